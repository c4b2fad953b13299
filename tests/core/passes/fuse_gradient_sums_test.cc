#include <gmock/gmock.h>

#include <algorithm>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/kernels/cpu/conv/image_blocks.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/gradient_check.h"
#include "tests/core/passes/placed_step.h"
#include "tests/core/same_bits.h"

namespace kolo {
namespace {

using ::testing::Contains;
using ::testing::Not;

struct FuseGradientSums : ::testing::Test {
  void SetUp() override {
    if (image_block() != 16) GTEST_SKIP() << "the own convolutions, which add, need AVX-512";
  }

  Tensor numbers(const Shape& shape) {
    return detail::converted<double>(test_numbers(shape, ++salt), DType::f32);
  }
  Output images() {
    const Output x = placeholder(s.named("x"), DType::f32, {4, 16, 6, 5});
    feeds.emplace_back(x, numbers(x.shape()));
    return x;
  }
  Output conv(Output x, const char* name, std::int64_t kernel = 1, std::int64_t stride = 1) {
    return conv2d(s.named(name), x, constant(s, numbers({16, 16, kernel, kernel})),
                  {.strides = {stride, stride}});
  }
  // Of a sum of y's elements, each with its own weight.
  Fetch gradient(Output y, Output x) { return gradients(s, {y}, {x}, {constant(s, numbers(y.shape()))})[0]; }

  StepGraph step_of(const std::vector<Fetch>& fetches) {
    StepGraph step = placed_step(fetches);
    rewrite(step, both());
    return step;
  }
  // Two passes, of which fuse_gradient_sums needs the first.
  static GraphOptions both() {
    GraphOptions options = only("fuse_gradient_sums");
    std::erase(options.disabled_passes, "layout");
    return options;
  }
  // Inputs of the nodes that make gradients of images.
  static std::vector<std::size_t> inputs_of_gradients(const StepGraph& step) {
    std::vector<std::size_t> counts;
    for (const StepNode& node : step.nodes)
      if (node.schema->name() == "BlockedConv2DBackpropInput") counts.push_back(node.inputs.size());
    std::sort(counts.begin(), counts.end());
    return counts;
  }
  // On two threads, between which a convolution divides its images: the first session fixes it for all.
  void expect_same_bits(const std::vector<Fetch>& fetches) {
    kolo::expect_same_bits(graph, fetches, feeds,
                           {.intra_op_parallelism_threads = 2, .graph_options = both()}, only("layout"));
  }

  Graph graph;
  Scope s{graph};
  Feeds feeds;
  int salt = 0;
};

TEST_F(FuseGradientSums, AddsAndMasksTheGradientOfAResidualBlock) {
  const Output x = images(), y = relu(s, conv(x, "first"));
  const Output z = add(s, conv(relu(s, conv(y, "conv1")), "conv2"), y);
  const std::vector<Fetch> fetches{z, gradient(z, x)};
  const auto ops = ops_of(step_of(fetches));
  EXPECT_THAT(ops, Not(Contains("AddN")));
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "ReluGrad"), 1) << "within the block";
  EXPECT_EQ(inputs_of_gradients(step_of(fetches)), (std::vector<std::size_t>{2, 2, 4}));
  expect_same_bits(fetches);
}

TEST_F(FuseGradientSums, AddsWhereThereIsNoRectifier) {
  const Output x = images(), y = conv(x, "first");
  const std::vector<Fetch> fetches{gradient(add(s, conv(y, "conv"), y), x)};
  EXPECT_EQ(inputs_of_gradients(step_of(fetches)), (std::vector<std::size_t>{2, 3}));
  expect_same_bits(fetches);
}

TEST_F(FuseGradientSums, AddsOneOfTwoGradientsToTheOther) {
  const Output x = images(), y = relu(s, conv(x, "first"));
  const std::vector<Fetch> fetches{gradient(mul(s, conv(y, "left"), conv(y, "right")), x)};
  EXPECT_EQ(inputs_of_gradients(step_of(fetches)), (std::vector<std::size_t>{2, 2, 4}));
  expect_same_bits(fetches);
}

TEST_F(FuseGradientSums, LeavesTheMaskOfASumThatIsRead) {
  const Output x = images(), y = conv(x, "first"), rectified = relu(s, y);
  const Output z = add(s, conv(rectified, "conv"), rectified);
  const Outputs to = gradients(s, {z}, {x, rectified}, {constant(s, numbers(z.shape()))});
  const std::vector<Fetch> fetches{to[0], to[1]};
  const auto ops = ops_of(step_of(fetches));
  EXPECT_THAT(ops, Not(Contains("AddN")));
  EXPECT_THAT(ops, Contains("ReluGrad"));
  expect_same_bits(fetches);
}

TEST_F(FuseGradientSums, LeavesAGradientThatIsRead) {
  const Output x = images(), y = relu(s, conv(x, "first")), same = identity(s, y);
  const Outputs to =
      gradients(s, {add(s, conv(same, "conv"), y)}, {x, same}, {constant(s, numbers(y.shape()))});
  const std::vector<Fetch> fetches{to[0], to[1]};
  EXPECT_THAT(ops_of(step_of(fetches)), Contains("AddN"));
  expect_same_bits(fetches);
}

TEST_F(FuseGradientSums, LeavesWhatNoKernelAddsTo) {
  const Output x = images(), y = relu(s, conv(x, "first"));
  const std::vector<Fetch> windows{gradient(add(s, conv(y, "wide", 3), y), x)};
  EXPECT_THAT(ops_of(step_of(windows)), Contains("AddN"));
  const std::vector<Fetch> strides{gradient(mul(s, conv(y, "left", 1, 2), conv(y, "right", 1, 2)), x)};
  EXPECT_THAT(ops_of(step_of(strides)), Contains("AddN"));
  expect_same_bits({windows[0], strides[0]});
}

}  // namespace
}  // namespace kolo
