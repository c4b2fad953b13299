#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/kernels/cpu/conv/image_blocks.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/normalization.h>
#include <kolo/core/ops/pooling.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/passes/placed_step.h"

namespace kolo {
namespace {

using ::testing::ElementsAre;

// Images and biases of few bits, whose sums are exact: what the pass may round otherwise it does not here.
struct PoolFirstTest : ::testing::Test {
  void SetUp() override {
    if (image_block() == 0) GTEST_SKIP() << "oneDNN has no blocked convolutions for this processor";
  }

  static Tensor eighths(const Shape& shape, int salt) {
    Tensor t(DType::f32, shape);
    std::int64_t i = 0;
    for (float& x : t.span<float>()) x = static_cast<float>((++i * (37 + salt)) % 61 - 40) / 8;
    return t;
  }
  // [n, 16, height, width], fed, behind a convolution that leaves them as they are but for their order.
  Output images(std::int64_t n, std::int64_t height, std::int64_t width) {
    const Output x = placeholder(s.named("x"), DType::f32, {n, 16, height, width});
    feeds.emplace_back(x, eighths(x.shape(), 0));
    Tensor identity = Tensor::zeros(DType::f32, {16, 16, 1, 1});
    for (int i = 0; i < 16; ++i) identity.data<float>()[i * 17] = 1;
    return conv2d(s, x, constant(s, identity));
  }
  Output bias() { return constant(s.named("bias"), eighths({16}, 3)); }
  float* fed() { return feeds[0].second.data<float>(); }
  std::vector<Output> with_gradients(Output y, const std::vector<Output>& xs) {
    std::vector<Output> all = gradients(s, {y}, xs, {constant(s, eighths(y.shape(), 7))});
    all.insert(all.begin(), y);
    return all;
  }

  static GraphOptions with_pass() {
    GraphOptions options = only("pool_first");
    std::erase(options.disabled_passes, "layout");
    return options;
  }
  // Poolings, biases and rectifiers of the rewritten step, each with its output's shape.
  std::vector<std::string> ops_of_step(const std::vector<Output>& fetches) {
    StepGraph step =
        placed_step({fetches.begin(), fetches.end()}, {{feeds[0].first, feeds[0].first.shape()}});
    rewrite(step, with_pass());
    std::vector<std::string> found;
    for (const int n : topological_order(step)) {
      const std::string& op = step.nodes[n].schema->name();
      for (const char* part : {"Bias", "Relu", "MaxPool"})
        if (op.find(part) != std::string::npos)
          found.push_back(fmt::format("{} {}", op, step.nodes[n].shapes[0]));
    }
    return found;
  }
  std::vector<Tensor> run(const std::vector<Output>& fetches, const GraphOptions& options) {
    return Session(graph, {.graph_options = options}).run({fetches.begin(), fetches.end()}, feeds);
  }
  void expect_same(const std::vector<Output>& fetches) {
    const auto with = run(fetches, with_pass()), without = run(fetches, only("layout"));
    for (std::size_t i = 0; i < with.size(); ++i) {
      ASSERT_EQ(with[i].shape(), without[i].shape());
      for (std::int64_t j = 0; j < with[i].elements(); ++j)
        ASSERT_EQ(with[i].data<float>()[j], without[i].data<float>()[j])
            << "fetch " << i << ", element " << j;
    }
  }

  Graph graph;
  Scope s{graph};
  Feeds feeds;
};

TEST_F(PoolFirstTest, PutsBiasAndRectifierBehindThePoolingAndTheirGradientsBeforeIts) {
  const Output x = images(2, 6, 8), b = bias();
  const auto fetches = with_gradients(max_pool(s, relu(s, bias_add(s, x, b))), {x, b});
  EXPECT_THAT(ops_of_step(fetches),
              ElementsAre("BlockedMaxPool [2,16,3,4]", "BlockedBiasAdd [2,16,3,4]", "Relu [2,16,3,4]",
                          "ReluGrad [2,16,3,4]", "BlockedMaxPoolGrad [2,16,6,8]", "BlockedBiasAddGrad [16]"));
  expect_same(fetches);
}

TEST_F(PoolFirstTest, DoesWithoutABias) {
  const Output x = images(1, 5, 5);
  const auto fetches = with_gradients(max_pool(s, relu(s, x)), {x});
  EXPECT_THAT(ops_of_step(fetches), ElementsAre("BlockedMaxPool [1,16,3,3]", "Relu [1,16,3,3]",
                                                "ReluGrad [1,16,3,3]", "BlockedMaxPoolGrad [1,16,5,5]"));
  expect_same(fetches);
}

// An element that two windows choose gets two gradients, or none.
TEST_F(PoolFirstTest, AddsUpGradientsOfWindowsThatOverlap) {
  const Output x = images(1, 9, 9);
  const auto fetches = with_gradients(max_pool(s, relu(s, x), {.window = {3, 3}}), {x});
  EXPECT_EQ(ops_of_step(fetches)[0], "BlockedMaxPool [1,16,5,5]");
  expect_same(fetches);
}

TEST_F(PoolFirstTest, SendsNoGradientToWindowsWithoutAPositiveElement) {
  const Output x = images(1, 4, 4);
  for (int i = 0; i < 16 * 16; ++i) fed()[i] = i % 3 == 0 ? 0.0f : -1.0f;
  const auto fetches = with_gradients(max_pool(s, relu(s, x)), {x});
  expect_same(fetches);
  const Tensor dx = run(fetches, with_pass())[1];
  for (const float element : dx.span<float>()) EXPECT_EQ(element, 0.0f);
}

TEST_F(PoolFirstTest, KeepsNanInItsWindow) {
  const Output x = images(1, 4, 4);
  for (int i = 0; i < 16 * 16; ++i) fed()[i] = static_cast<float>(i % 16);
  fed()[0] = fed()[3] = std::numeric_limits<float>::quiet_NaN();  // first of its window, second of its window
  const Output y = max_pool(s, relu(s, x));
  for (const auto& options : {with_pass(), only("layout")}) {
    const Tensor result = run({y}, options)[0];
    EXPECT_TRUE(std::isnan(result.data<float>()[0]));
    EXPECT_TRUE(std::isnan(result.data<float>()[1]));
    EXPECT_EQ(result.data<float>()[2], 13);
    EXPECT_EQ(result.data<float>()[3], 15);
  }
}

TEST_F(PoolFirstTest, TellsFetchesOfGradientsWhereTheyAre) {
  const Output x = images(1, 4, 4), z = bias_add(s, x, bias()), y = max_pool(s, relu(s, z));
  expect_same(with_gradients(y, {z, x}));
  expect_same({y, neg(s, y)});
}

TEST_F(PoolFirstTest, KeepsTheBiasOfBeforeItsUpdate) {
  const Variable b(s.named("b"), bias());
  const Output x = images(1, 4, 4), y = max_pool(s, relu(s, bias_add(s, x, b)));
  const Output updated = assign_add(s, b, constant(s, eighths({16}, 5)));
  const Operation init = global_variables_initializer(s);
  for (const auto& options : {with_pass(), only("layout")}) {
    Session session(graph, {.graph_options = options});
    session.run({init});
    const Tensor before = session.run(y, feeds);
    const auto both = session.run({y, updated}, feeds);
    EXPECT_EQ(std::memcmp(both[0].raw(), before.raw(), before.bytes()), 0);
  }
}

TEST_F(PoolFirstTest, LeavesRectifiedImagesThatSomethingElseReads) {
  const Output x = images(1, 4, 4), rectified = relu(s, x), y = max_pool(s, rectified);
  const auto unchanged = ElementsAre("Relu [1,16,4,4]", "BlockedMaxPool [1,16,2,2]");
  EXPECT_THAT(ops_of_step({y, rectified}), unchanged) << "fetched";
  EXPECT_THAT(ops_of_step({y, neg(s, rectified)}), unchanged) << "read";
  const Output of_both = gradients(s, {y, avg_pool(s, rectified)}, {x})[0];
  EXPECT_EQ(ops_of_step({y, of_both})[0], "Relu [1,16,4,4]") << "a gradient of both";
}

TEST_F(PoolFirstTest, LeavesABiasedImageThatSomethingElseReads) {
  const Output biased = bias_add(s, images(1, 4, 4), bias()), y = max_pool(s, relu(s, biased));
  EXPECT_EQ(ops_of_step({y, neg(s, biased)})[0], "BlockedBiasAdd [1,16,4,4]");
}

TEST_F(PoolFirstTest, LeavesPoolingThatMakesImagesNoSmaller) {
  const Output y = max_pool(s, relu(s, images(1, 4, 4)), {.strides = {1, 1}});
  EXPECT_EQ(ops_of_step({y})[0], "Relu [1,16,4,4]");
}

TEST_F(PoolFirstTest, LeavesTheRectifierToNormalization) {
  const Output x = images(2, 4, 4);
  const Output y = max_pool(s, relu(s, batch_norm(s, x, bias(), bias(), bias(), bias()).y));
  EXPECT_EQ(ops_of_step({y})[0], "Relu [2,16,4,4]");
}

}  // namespace
}  // namespace kolo
