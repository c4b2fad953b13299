#include <gmock/gmock.h>

#include <algorithm>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/kernels/cpu/conv/image_blocks.h>
#include <kolo/core/kernels/cpu/onednn/native_bf16.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/normalization.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/slicing.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/passes/memory.h>

#include "tests/core/gradient_check.h"
#include "tests/core/passes/placed_step.h"
#include "tests/core/same_bits.h"

namespace kolo {
namespace {

using ::testing::Contains;
using ::testing::Not;

constexpr std::int64_t kChannels = 16;

// Convolutions of 1 × 1, each with its normalization and rectifier.
struct Recompute : ::testing::Test {
  void SetUp() override {
    if (image_block() == 0) GTEST_SKIP() << "oneDNN has no blocked convolutions for this processor";
  }

  Tensor numbers(const Shape& shape) {
    return detail::converted<double>(test_numbers(shape, ++salt), DType::f32);
  }
  // 4 MiB an image by default.
  Output images(std::int64_t size = 128) {
    const Output x = placeholder(s.named("x"), DType::f32, {4, kChannels, size, size});
    feeds.emplace_back(x, numbers(x.shape()));
    return x;
  }
  Output convolution(Output x, std::int64_t kernel = 1) {
    weights.push_back(constant(s, numbers({kChannels, kChannels, kernel, kernel})));
    return conv2d(s, x, weights.back(), {.padding = Padding::valid});
  }
  BatchNormResult norm(Output x) {
    const Output offset = offset_of_norms ? offset_of_norms : constant(s, numbers({kChannels}));
    const auto of_channels = [&] { return constant(s, numbers({kChannels})); };
    norms.push_back(
        batch_norm(s.named("norm"), x, of_channels(), offset, of_channels(), exp(s, of_channels())));
    return norms.back();
  }
  Output layers(Output x, int count) {
    for (int i = 0; i < count; ++i) x = relu(s, norm(convolution(x)).y);
    return x;
  }
  // With respect to all weights, of a sum of y's elements, each with its own weight.
  std::vector<Fetch> gradients_of(Output y) {
    std::vector<Fetch> fetches;
    for (const Output& gradient : gradients(s, {y}, weights, {constant(s, numbers(y.shape()))}))
      fetches.push_back(gradient);
    return fetches;
  }

  static GraphOptions without() { return {.disabled_passes = {"recompute"}}; }
  static StepGraph step_with(const std::vector<Fetch>& fetches, const GraphOptions& options) {
    StepGraph step = placed_step(fetches);
    rewrite(step, options);
    return step;
  }
  static std::vector<std::string> ops_with(const std::vector<Fetch>& fetches) {
    return ops_of(step_with(fetches, {}));
  }
  static std::size_t planned_bytes(StepGraph step) {
    return plan_memory(step, topological_order(step), std::vector<std::size_t>(step.nodes.size()))
        .arena_bytes;
  }
  void expect_same_bits(const std::vector<Fetch>& fetches, int threads = 1,
                        Precision precision = Precision::f32) {
    GraphOptions kept = without();
    kept.precision = precision;
    kolo::expect_same_bits(graph, fetches, feeds,
                           {.inter_op_parallelism_threads = threads,
                            .use_per_session_threads = true,
                            .graph_options = {.precision = precision}},
                           kept);
  }

  Graph graph;
  Scope s{graph};
  Feeds feeds;
  Outputs weights;
  std::vector<BatchNormResult> norms;
  Output offset_of_norms;
  int salt = 0;
};

TEST_F(Recompute, NormalizesAgainForTheGradientsOfTheNextConvolution) {
  const auto fetches = gradients_of(layers(images(), 12));
  EXPECT_THAT(ops_with(fetches), Contains("BlockedBatchNormInference"));
  EXPECT_LT(planned_bytes(step_with(fetches, {})), planned_bytes(step_with(fetches, without())) * 2 / 3);
  expect_same_bits(fetches);
  expect_same_bits(fetches, 3);
}

TEST_F(Recompute, AddsAgainWhatALayerBeforeHasComputed) {
  Output y = layers(images(), 1);
  for (int stage = 0; stage < 4; ++stage) {
    // A block with a convolution on either side, of whose sums one is there for a moment only; two without.
    y = relu(s, add(s, norm(convolution(y)).y, norm(convolution(y)).y));
    for (int i = 0; i < 2; ++i) y = relu(s, add(s, norm(convolution(layers(y, 1))).y, y));
  }
  const auto fetches = gradients_of(y);
  EXPECT_LT(planned_bytes(step_with(fetches, {})), planned_bytes(step_with(fetches, without())) * 3 / 4);
  expect_same_bits(fetches);
}

TEST_F(Recompute, PadsAgain) {
  Output y = images();
  for (int i = 0; i < 8; ++i) {
    y = pad(s, layers(y, 1), {{0, 0}, {0, 0}, {1, 1}, {1, 1}});
    y = convolution(y, 3);
  }
  const auto fetches = gradients_of(y);
  const auto ops = ops_with(fetches);
  EXPECT_GT(std::count(ops.begin(), ops.end(), "BlockedPad"), 8);
  expect_same_bits(fetches);
}

TEST_F(Recompute, NormalizesAgainWhatIsStoredInBf16) {
  if (!detail::has_native_bf16()) GTEST_SKIP() << "this CPU has no instructions for bf16";
  const auto fetches = gradients_of(layers(images(256), 12));
  StepGraph step = placed_step(fetches);
  lower_precision(step, Precision::bf16);
  rewrite(step, {.precision = Precision::bf16});
  EXPECT_THAT(step.nodes, Contains(::testing::Truly([&](const StepNode& node) {
                return node.schema->name() == "BlockedBatchNormInference" && node.dtypes[0] == DType::bf16;
              })));
  expect_same_bits(fetches, 1, Precision::bf16);
}

TEST_F(Recompute, MovesAveragesOnce) {
  auto fetches = gradients_of(layers(images(), 12));
  for (const BatchNormResult& of_layer : norms) fetches.push_back(of_layer.moving_mean);
  EXPECT_THAT(ops_with(fetches), Contains("BlockedBatchNormInference"));
  const auto ops = ops_with(fetches);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "BlockedBatchNorm"), 12);
  expect_same_bits(fetches);
}

TEST_F(Recompute, KeepsValuesOfSmallSteps) {
  EXPECT_THAT(ops_with(gradients_of(layers(images(32), 12))), Not(Contains("BlockedBatchNormInference")));
}

TEST_F(Recompute, KeepsWhatNoGradientReads) {
  EXPECT_THAT(ops_with({layers(images(256), 12)}), Not(Contains("BlockedBatchNormInference")));
}

TEST_F(Recompute, KeepsWhatAnUpdateOfItsOffsetComesBehind) {
  const Variable offset(s.named("offset"), zeros(s, DType::f32, {kChannels}));
  offset_of_norms = offset.read();
  const Output y = layers(images(), 12);
  const Output update = assign_add(s, offset, ones(s, DType::f32, {kChannels}));
  auto fetches = gradients_of(y);
  fetches.push_back(Operation(update));
  EXPECT_THAT(ops_with(fetches), Not(Contains("BlockedBatchNormInference")));
}

TEST_F(Recompute, ReadsAVariableThatIsUpdatedAtTheEnd) {
  const Variable offset(s.named("offset"), zeros(s, DType::f32, {kChannels}));
  offset_of_norms = offset.read();
  auto fetches = gradients_of(layers(images(), 12));
  fetches.push_back(Operation(assign_add(s, offset, ones(s, DType::f32, {kChannels}))));
  EXPECT_THAT(ops_with(fetches), Contains("BlockedBatchNormInference"));
}

}  // namespace
}  // namespace kolo
