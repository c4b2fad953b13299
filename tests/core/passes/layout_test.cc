#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/kernels/cpu/conv/image_blocks.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/normalization.h>
#include <kolo/core/ops/pooling.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/slicing.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/gradient_check.h"
#include "tests/core/passes/placed_step.h"

namespace kolo {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

// A net of some images [N,C,H,W] (input 0) and parameters.
struct Net {
  std::vector<Shape> inputs;
  std::function<Output(Scope&, const Outputs&)> build;
};

// The value of a net and the gradients of its elements, each with a weight of its own, to all inputs.
struct Outcome {
  std::vector<Tensor> values;
  std::vector<std::string> ops;
};

Tensor of_type(const Tensor& numbers, DType type) {
  return type == DType::f64 ? numbers : detail::converted<double>(numbers, type);
}

Outcome outcome_of(const Net& net, DType type, const GraphOptions& options) {
  Graph graph;
  Scope s(graph);
  Outputs inputs;
  Feeds feeds;
  for (const Shape& shape : net.inputs) {
    inputs.push_back(placeholder(s, type, shape));
    feeds.emplace_back(inputs.back(), of_type(test_numbers(shape, static_cast<int>(inputs.size())), type));
  }
  const Output y = net.build(s, inputs);
  const Output weights = constant(s, of_type(test_numbers(y.shape(), 77), type));
  std::vector<Fetch> fetches{y};
  for (const Output& gradient : gradients(s, {y}, inputs, {weights}))
    if (gradient) fetches.emplace_back(gradient);
  std::vector<std::pair<Output, Shape>> fed;
  for (const auto& [value, tensor] : feeds) fed.emplace_back(value, tensor.shape());
  StepGraph step = placed_step(fetches, fed);
  rewrite(step, options);
  Session session(graph, {.graph_options = options});
  return {session.run(fetches, feeds), ops_of(step)};
}

// ‖a − b‖ ÷ ‖b‖
double distance(const Tensor& a, const Tensor& b) {
  const Tensor x = detail::as_double(a), y = detail::as_double(b);
  double difference = 0, size = 0;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    difference += std::pow(x.data<double>()[i] - y.data<double>()[i], 2);
    size += std::pow(y.data<double>()[i], 2);
  }
  return std::sqrt(difference / (size > 0 ? size : 1));
}

// Sums of some hundred products in f32, by Winograd's algorithm too, against the same in f64, which never
// lies in blocks.
constexpr double kTolerance = 4e-5;

struct BlockedStep : ::testing::Test {
  void SetUp() override {
    if (image_block() == 0) GTEST_SKIP() << "oneDNN has no blocked convolutions for this processor";
  }
  static void expect_as_in_f64(const Net& net, const std::string& blocked_op = "BlockedConv2D") {
    const Outcome blocked = outcome_of(net, DType::f32, {});
    const Outcome exact = outcome_of(net, DType::f64, {.optimizer_level = OptimizerLevel::l0});
    EXPECT_THAT(blocked.ops, Contains(blocked_op));
    ASSERT_EQ(blocked.values.size(), exact.values.size());
    for (std::size_t i = 0; i < exact.values.size(); ++i)
      EXPECT_LT(distance(blocked.values[i], exact.values[i]), kTolerance) << "value " << i;
  }
};

Output conv(Scope& s, Output x, Output w, std::int64_t stride = 1, std::int64_t groups = 1) {
  return conv2d(s, x, w, {.strides = {stride, stride}, .padding = Padding::same, .groups = groups});
}
// Parameters p[first …]: scale, offset, moving mean, moving variance.
Output norm(Scope& s, Output x, const Outputs& p, std::size_t first) {
  return batch_norm(s, x, p[first], p[first + 1], stop_gradient(s, p[first + 2]),
                    stop_gradient(s, p[first + 3]))
      .y;
}

const Net kResidual{
    .inputs = {{3, 32, 7, 5}, {32, 32, 3, 3}, {32}, {32}, {32}, {32}, {32, 32, 3, 3}, {32}, {32}, {32}, {32}},
    .build = [](Scope& s, const Outputs& p) {
      const Output x = relu(s, conv(s, p[0], p[1]));
      const Output h = relu(s, norm(s, conv(s, x, p[1]), p, 2));
      const Output y = norm(s, conv(s, h, p[6]), p, 7);
      return relu(s, add(s, y, x));
    }};

TEST_F(BlockedStep, ComputesConvolutionsInARow) {
  expect_as_in_f64({.inputs = {{2, 16, 9, 6}, {48, 16, 3, 3}, {32, 48, 1, 1}},
                    .build = [](Scope& s, const Outputs& p) { return conv(s, conv(s, p[0], p[1]), p[2]); }});
}

TEST_F(BlockedStep, ReadsImagesOfFewChannelsAsTheyAre) {
  for (const std::int64_t channels : {1, 3, 5})
    expect_as_in_f64(
        {.inputs = {{2, channels, 8, 8}, {32, channels, 5, 5}, {16, 32, 3, 3}},
         .build = [](Scope& s, const Outputs& p) { return conv(s, conv(s, p[0], p[1]), p[2]); }});
}

TEST_F(BlockedStep, WritesResultsOfOddChannelsAsTheyAre) {
  expect_as_in_f64(
      {.inputs = {{2, 3, 8, 8}, {32, 3, 3, 3}, {10, 32, 1, 1}},
       .build = [](Scope& s, const Outputs& p) { return conv(s, relu(s, conv(s, p[0], p[1])), p[2]); }});
}

TEST_F(BlockedStep, TakesStridesAndGroups) {
  for (const std::int64_t groups : {1, 2, 32})
    for (const std::int64_t stride : {1, 2})
      expect_as_in_f64({.inputs = {{2, 32, 9, 7}, {64, 32, 3, 3}, {64, 64 / groups, 3, 3}},
                        .build = [&](Scope& s, const Outputs& p) {
                          return conv(s, conv(s, p[0], p[1], stride), p[2], stride, groups);
                        }});
}

TEST_F(BlockedStep, TakesDepthwiseConvolutions) {
  expect_as_in_f64(
      {.inputs = {{2, 32, 9, 7}, {32, 32, 3, 3}, {32, 1, 3, 3}}, .build = [](Scope& s, const Outputs& p) {
         return depthwise_conv2d(s, conv(s, p[0], p[1]), p[2], {.padding = Padding::same});
       }});
}

TEST_F(BlockedStep, NormalizesAddsAndRectifies) { expect_as_in_f64(kResidual, "BlockedBatchNorm"); }

TEST_F(BlockedStep, NormalizesBySetStatistics) {
  expect_as_in_f64(
      {.inputs = {{2, 16, 5, 5}, {32, 16, 3, 3}, {32}, {32}, {32}, {32}},
       .build =
           [](Scope& s, const Outputs& p) {
             return relu(s, batch_norm_inference(s, conv(s, p[0], p[1]), p[2], p[3], stop_gradient(s, p[4]),
                                                 stop_gradient(s, square(s, p[5]))));
           }},
      "BlockedBatchNormInference");
}

TEST_F(BlockedStep, PoolsMaximaAndMeans) {
  expect_as_in_f64(
      {.inputs = {{2, 3, 13, 9}, {32, 3, 3, 3}, {32}},
       .build =
           [](Scope& s, const Outputs& p) {
             Output x = max_pool(s, relu(s, bias_add(s, conv(s, p[0], p[1]), p[2])),
                                 {.window = {3, 3}, .strides = {2, 2}, .padding = Padding::same});
             x = avg_pool(s, x, {.window = {2, 2}, .strides = {2, 2}, .padding = Padding::valid});
             return reshape(s, x, {2, -1});
           }},
      "BlockedMaxPool");
}

TEST_F(BlockedStep, PadsAndCutsRowsAndColumns) {
  const Net net{.inputs = {{2, 32, 7, 6}, {48, 32, 3, 3}, {16, 48, 3, 3}},
                .build = [](Scope& s, const Outputs& p) {
                  const Output x = conv(s, p[0], p[1]);
                  const Output wider = pad(s, x, {{0, 0}, {0, 0}, {1, 2}, {0, 3}}, 0.5);
                  const Output pooled =
                      max_pool(s, wider, {.window = {3, 3}, .strides = {2, 2}, .padding = Padding::valid});
                  const Output cut = strided_slice(s, wider, {0, 0, 1, 2}, {2, 48, 9, 8}, {1, 1, 2, 3});
                  return concat(s, {reshape(s, conv(s, pooled, p[2]), {2, -1}), reshape(s, cut, {2, -1})}, 1);
                }};
  expect_as_in_f64(net, "BlockedPad");
  expect_as_in_f64(net, "BlockedSlice");
}

TEST_F(BlockedStep, LeavesPaddingOfChannels) {
  const Net net{.inputs = {{2, 32, 5, 5}, {16, 32, 3, 3}}, .build = [](Scope& s, const Outputs& p) {
                  return pad(s, conv(s, p[0], p[1]), {{0, 0}, {8, 8}, {1, 1}, {0, 0}});
                }};
  expect_as_in_f64(net);
  EXPECT_THAT(outcome_of(net, DType::f32, {}).ops, Not(Contains("BlockedPad")));
}

TEST_F(BlockedStep, AddsBiasesWithAndWithoutFusion) {
  const Net net{.inputs = {{3, 3, 11, 9}, {48, 3, 3, 3}, {48}}, .build = [](Scope& s, const Outputs& p) {
                  return tanh(s, bias_add(s, conv(s, p[0], p[1]), p[2]));
                }};
  expect_as_in_f64(net, "BlockedBiasAddGrad");
  const Outcome fused = outcome_of(net, DType::f32, {}),
                single = outcome_of(net, DType::f32, {.disabled_passes = {"fuse_elementwise"}});
  EXPECT_THAT(single.ops, Contains("BlockedBiasAdd"));
  for (std::size_t i = 0; i < fused.values.size(); ++i)
    EXPECT_EQ(distance(fused.values[i], single.values[i]), 0);
}

TEST_F(BlockedStep, GivesTheSameBitsForAnyNumberOfThreads) {
  const auto on_threads = [](int threads) {
    Graph graph;
    Scope s(graph);
    Outputs inputs;
    Feeds feeds;
    for (const Shape& shape : std::vector<Shape>{{5, 16, 30, 30}, {16, 16, 3, 3}, {16}, {16}, {16}, {16}}) {
      inputs.push_back(placeholder(s, DType::f32, shape));
      feeds.emplace_back(inputs.back(), of_type(test_numbers(shape, 3), DType::f32));
    }
    const Output h = norm(s, conv(s, inputs[0], inputs[1]), inputs, 2);
    Session session(graph, {.intra_op_parallelism_threads = threads});
    return session.run(std::vector<Fetch>{h, gradients(s, {square(s, h)}, {inputs[2]})[0]}, feeds);
  };
  const auto one = on_threads(1), three = on_threads(3);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(distance(one[i], three[i]), 0) << i;
}

TEST_F(BlockedStep, KeepsNan) {
  Graph graph;
  Scope s(graph);
  Tensor x = of_type(test_numbers({1, 16, 4, 4}), DType::f32);
  x.data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  const Output w = constant(s, of_type(test_numbers({16, 16, 1, 1}), DType::f32)),
               ones = constant(s, of_type(test_numbers({16}), DType::f32));
  const Output h = relu(s, bias_add(s, conv(s, constant(s, x), w), ones));
  const Output y = relu(s, batch_norm(s, h, ones, ones, ones, ones).y);
  const auto values = Session(graph).run({h, y}, Feeds{});
  EXPECT_TRUE(std::isnan(values[0].data<float>()[5]));
  for (const float value : values[1].span<float>()) EXPECT_TRUE(std::isnan(value));
}

TEST_F(BlockedStep, ReordersOnlyWhereOthersRead) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s.named("x"), DType::f32, {2, 3, 8, 8}),
               w = placeholder(s.named("w"), DType::f32, {32, 3, 3, 3});
  const Output y = reshape(s.named("y"), relu(s.named("relu"), conv(s, x, w)), {2, -1});
  const StepGraph step = after("layout", {y});
  EXPECT_THAT(ops_of(step),
              ElementsAre("Placeholder", "Placeholder", "BlockedConv2D", "Relu", "ToRowMajor", "Reshape"));
  EXPECT_EQ(input_of(step, "y"), "relu/row_major");
}

TEST_F(BlockedStep, ReordersOnceForAllReaders) {
  const auto step = outcome_of(kResidual, DType::f32, {}).ops;
  EXPECT_EQ(std::count(step.begin(), step.end(), "ToBlocked"), 2);   // the images and the gradient of y
  EXPECT_EQ(std::count(step.begin(), step.end(), "ToRowMajor"), 2);  // y, and the gradient of the images
}

TEST_F(BlockedStep, LeavesWhatIsNotInF32OrHasNoConvolution) {
  EXPECT_THAT(outcome_of(kResidual, DType::f64, {}).ops, Each(Not(HasSubstr("Blocked"))));
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {2, 32, 4, 4});
  EXPECT_THAT(ops_of(after("layout", {relu(s, x)})), ElementsAre("Placeholder", "Relu"));
}

TEST_F(BlockedStep, LeavesMaximaWhoseCellsAreFetched) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {2, 16, 8, 8}), w = placeholder(s, DType::f32, {16, 16, 3, 3});
  const Output y = max_pool(s, conv(s, x, w));
  EXPECT_THAT(ops_of(after("layout", {y, y.node->output(1)})), Contains("MaxPool"));
}

TEST_F(BlockedStep, DoesNotReorderVariables) {
  Graph graph;
  Scope s(graph);
  const Variable v(s, constant(s, of_type(test_numbers({1, 16, 4, 4}), DType::f32)));
  const Output w = placeholder(s, DType::f32, {16, 16, 3, 3});
  EXPECT_THAT(ops_of(after("layout", {conv(s, v, w)})), Not(Contains("ToBlocked")));
}

}  // namespace
}  // namespace kolo
