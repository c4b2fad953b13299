#include <kolo/models/zoo.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/inference_form.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/runtime/trace.h>
#include <kolo/models/models.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>

namespace kolo::models {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Resnet20, HasAsManyParametersAsThePeer) {
  Graph graph;
  Scope s(graph);
  EXPECT_EQ(find_model("resnet20").build(s, placeholder(s, DType::f32, {-1, 3, 32, 32})).shape(),
            Shape({-1, 10}));
  std::int64_t parameters = 0;
  for (const Variable& variable : trainable_variables(graph)) parameters += variable.shape().elements();
  EXPECT_EQ(parameters, 272474);
  EXPECT_EQ(global_variables(graph).size() - trainable_variables(graph).size(), 2u * 21u)
      << "two moving averages for each normalization";
}

TEST(Resnet20, TakesImagesOfOtherSizes) {
  Graph graph;
  Scope s(graph);
  EXPECT_EQ(resnet20(s, placeholder(s, DType::f32, {7, 1, 28, 28})).shape(), Shape({7, 10}));
  EXPECT_THAT(
      [&] {
        resnet20(s, placeholder(s, DType::f32, {-1, 784}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("[?,784]")));
}

Feeds made_up_feeds(Output images, Output labels) {
  Tensor pixels(DType::f32, images.shape()), classes(DType::i32, labels.shape());
  for (std::int64_t i = 0; i < pixels.elements(); ++i)
    pixels.data<float>()[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i * i % 8191)));
  for (std::int64_t i = 0; i < classes.elements(); ++i)
    classes.data<std::int32_t>()[i] = static_cast<std::int32_t>(i % 10);
  return {{images, pixels}, {labels, classes}};
}

// A training step on `batch` images of made-up numbers.
struct Training {
  Graph graph;
  Scope s{graph};
  Output loss;
  Operation step;
  Feeds feeds;

  explicit Training(std::int64_t batch) {
    graph.set_seed(1);
    const Output images = placeholder(s, DType::f32, {batch, 3, 32, 32});
    const Output labels = placeholder(s, DType::i32, {batch});
    loss = softmax_cross_entropy(s, resnet20(s, images), labels);
    DistributedOptimizer optimizer(std::make_unique<MomentumOptimizer>(0.01f, 0.9f));
    step = optimizer.minimize(s, loss);
    feeds = made_up_feeds(images, labels);
  }
};

TEST(Resnet20, LearnsABatchByHeart) {
  Training net(4);
  Session session(net.graph);
  session.run(global_variables_initializer(net.s));
  const float before = session.run(net.loss, net.feeds).value<float>();
  for (int i = 0; i < 12; ++i) session.run(net.step, net.feeds);
  EXPECT_LT(session.run(net.loss, net.feeds).value<float>(), 0.2f * before);
}

TEST(Resnet20, JudgesEachImageAloneInInference) {
  Graph graph;
  Scope s(graph);
  const Output images = placeholder(s, DType::f32, {4, 3, 32, 32}), labels = placeholder(s, DType::i32, {4});
  MomentumOptimizer optimizer(0.01f, 0.9f);
  const Output logits = models::resnet20(s, images);
  const Operation train_op = optimizer.minimize(s, softmax_cross_entropy(s, logits, labels));
  const Output test_logits = inference_form(s, logits);  // moving averages instead of the batch's statistics
  Feeds feeds = made_up_feeds(images, labels);
  Session session(graph);
  session.run(global_variables_initializer(s));
  for (int i = 0; i < 3; ++i) session.run(train_op, feeds);
  const Tensor together = session.run(test_logits, feeds);
  for (float& pixel : feeds[0].second.rows(1, 4).span<float>()) pixel = 0.25f;
  const Tensor with_others = session.run(test_logits, feeds);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(together.data<float>()[i], with_others.data<float>()[i]) << "logit " << i << " of image 0";
}

TEST(Resnet20, NeedsLessThanHalfTheMemoryOfItsBuffers) {
  Training net(64);
  Session session(net.graph);
  session.run(global_variables_initializer(net.s));
  RunMetadata metadata;
  session.run(std::vector<Fetch>{net.loss, net.step}, net.feeds, {.trace_level = TraceLevel::full_trace},
              &metadata);
  const StepTrace& trace = metadata.step_stats;
  EXPECT_LE(static_cast<double>(trace.arena_bytes), 0.45 * static_cast<double>(trace.unplanned_bytes))
      << trace.arena_bytes << " of " << trace.unplanned_bytes << " bytes";
  RecordProperty("arena_bytes", std::to_string(trace.arena_bytes));
  RecordProperty("unplanned_bytes", std::to_string(trace.unplanned_bytes));
}

}  // namespace
}  // namespace kolo::models
