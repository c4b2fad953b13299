// The models for photographs: resnet50 and vgg16.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/models.h>
#include <kolo/models/zoo.h>
#include <kolo/optimizer/rules.h>

namespace kolo::models {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Built {
  explicit Built(const std::string& name)
      : logits(find_model(name).build(s, placeholder(s, DType::f32, {-1, 3, 224, 224}))) {
    for (const Variable& variable : trainable_variables(graph)) {
      shapes[variable.name()] = variable.shape();
      parameters += variable.shape().elements();
    }
  }
  Graph graph;
  Scope s{graph};
  Output logits;
  std::map<std::string, Shape> shapes;
  std::int64_t parameters = 0;
};

TEST(Resnet50, HasAsManyParametersAsThePeer) {
  const Built net("resnet50");
  EXPECT_EQ(net.logits.shape(), Shape({-1, 1000}));
  EXPECT_EQ(net.parameters, 25557032);
  EXPECT_EQ(net.shapes.at("conv1/w"), Shape({64, 3, 7, 7}));
  EXPECT_EQ(net.shapes.at("stage4/block1/shortcut/w"), Shape({2048, 1024, 1, 1}));
}

TEST(Vgg16, HasAsManyParametersAsThePeer) {
  const Built net("vgg16");
  EXPECT_EQ(net.logits.shape(), Shape({-1, 1000}));
  EXPECT_EQ(net.parameters, 138357544);
  EXPECT_EQ(net.shapes.at("fc1/w"), Shape({25088, 4096}));
}

TEST(Vgg16, RefusesImagesThatVanish) {
  Graph graph;
  Scope s(graph);
  EXPECT_THAT(
      [&] {
        vgg16(s, placeholder(s, DType::f32, {-1, 3, 31, 64}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("smaller than 32x32")));
}

// Loss of a batch of made-up images of 32×32 before and after some steps.
std::pair<float, float> losses(Output (*build)(Scope&, Output, std::int64_t), int steps, float rate) {
  constexpr std::int64_t kBatch = 4;
  Graph graph;
  graph.set_seed(1);
  Scope s(graph);
  const Output images = placeholder(s, DType::f32, {kBatch, 3, 32, 32}),
               labels = placeholder(s, DType::i32, {kBatch});
  const Output loss = softmax_cross_entropy(s, build(s, images, 1000), labels);
  MomentumOptimizer optimizer(rate, 0.9f);
  const Operation train = optimizer.minimize(s, loss);
  Tensor pixels(DType::f32, images.shape());
  for (std::int64_t i = 0; i < pixels.elements(); ++i)
    pixels.data<float>()[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i * i % 8191)));
  const Feeds feeds{{images, pixels}, {labels, Tensor::of<std::int32_t>({kBatch}, {1, 20, 300, 999})}};
  Session session(graph);
  session.run(global_variables_initializer(s));
  const float before = session.run(loss, feeds).value<float>();
  for (int i = 0; i < steps; ++i) session.run(train, feeds);
  return {before, session.run(loss, feeds).value<float>()};
}

TEST(Resnet50, LearnsABatchByHeart) {
  const auto [before, after] = losses(resnet50, 12, 0.01f);
  EXPECT_NEAR(before, std::log(1000.0), 2.0);
  EXPECT_LT(after, 0.3f * before);
}

TEST(Vgg16, LearnsABatchByHeart) {
  const auto [before, after] = losses(vgg16, 20, 0.03f);
  EXPECT_NEAR(before, std::log(1000.0), 2.0);
  EXPECT_LT(after, 0.7f * before);
}

}  // namespace
}  // namespace kolo::models
