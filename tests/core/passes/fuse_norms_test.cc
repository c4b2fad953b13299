#include <gmock/gmock.h>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/kernels/cpu/conv/image_blocks.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/normalization.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/gradient_check.h"
#include "tests/core/passes/placed_step.h"
#include "tests/core/same_bits.h"

namespace kolo {
namespace {

using ::testing::Contains;
using ::testing::Not;

struct FuseNorms : ::testing::Test {
  void SetUp() override {
    if (image_block() == 0) GTEST_SKIP() << "oneDNN has no blocked convolutions for this processor";
  }

  // The images of a feed behind a convolution, so that they lie in blocks.
  Output images(const char* name) {
    const Output x = placeholder(s.named(name), DType::f32, {3, 16, 6, 5});
    feeds.emplace_back(x, detail::converted<double>(test_numbers(x.shape(), ++salt), DType::f32));
    const Tensor weights = detail::converted<double>(test_numbers({16, 16, 1, 1}, ++salt), DType::f32);
    return conv2d(s, x, constant(s, weights));
  }
  BatchNormResult norm(Output x, const char* name = "norm") {
    const auto numbers = [&] {
      return constant(s, detail::converted<double>(test_numbers({16}, ++salt), DType::f32));
    };
    return batch_norm(s.named(name), x, numbers(), numbers(), numbers(), numbers());
  }

  // Two passes, of which fuse_norms needs the first.
  std::vector<std::string> ops_of_step(const std::vector<Fetch>& fetches) {
    StepGraph step = placed_step(fetches);
    rewrite(step, both());
    return ops_of(step);
  }
  static GraphOptions both() {
    GraphOptions options = only("fuse_norms");
    std::erase(options.disabled_passes, "layout");
    return options;
  }
  void expect_same_bits(const std::vector<Fetch>& fetches) {
    kolo::expect_same_bits(graph, fetches, feeds, {.graph_options = both()}, only("layout"));
  }
  // Of a sum of y's elements, each with its own weight.
  Fetch gradient(Output y, Output x) {
    const Tensor weights = detail::converted<double>(test_numbers(y.shape(), 50), DType::f32);
    return gradients(s, {y}, {x}, {constant(s, weights)})[0];
  }

  Graph graph;
  Scope s{graph};
  Feeds feeds;
  int salt = 0;
};

TEST_F(FuseNorms, TakesTheRectifierAndItsGradient) {
  const Output x = images("x");
  const Output y = relu(s, norm(x).y);
  const std::vector<Fetch> fetches{y, gradient(y, x)};
  EXPECT_THAT(ops_of_step(fetches), Not(Contains("Relu")));
  EXPECT_THAT(ops_of_step(fetches), Not(Contains("ReluGrad")));
  expect_same_bits(fetches);
}

TEST_F(FuseNorms, TakesTheTailOfAResidualBlock) {
  const Output x = relu(s, images("x")), z = images("z");
  const Output y = relu(s, add(s, norm(z).y, x));
  const Output last = relu(s, norm(add(s, y, square(s, y)), "last").y);
  const std::vector<Fetch> fetches{last, gradient(last, x), gradient(last, z)};
  const auto ops = ops_of_step(fetches);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "BlockedBatchNorm"), 2);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Relu"), 1);  // of x
  expect_same_bits(fetches);
}

TEST_F(FuseNorms, TakesTheSumOfTwoNormsIntoTheLater) {
  const Output x = images("x"), z = images("z");
  const Output first = norm(x, "first").y, second = norm(z, "second").y;
  const Output y = relu(s, add(s, first, second));
  StepGraph step = placed_step({y});
  rewrite(step, both());
  EXPECT_EQ(step.nodes[step.fetches[0].node].schema->name(), "ToRowMajor");
  EXPECT_EQ(step.nodes[step.nodes[step.fetches[0].node].inputs[0].node].name, "second");
  expect_same_bits({y, gradient(y, x), gradient(y, z)});
}

TEST_F(FuseNorms, TellsTheMaskFromXUnlessSomethingIsAdded) {
  const Output x = images("x"), z = images("z"), y = relu(s, norm(x).y), sum = relu(s, add(s, norm(z).y, y));
  StepGraph step = placed_step({gradient(sum, x), gradient(sum, z)});
  rewrite(step, both());
  int of_x = 0, of_y = 0;
  for (const StepNode& node : step.nodes) {
    if (node.schema->name() != "BlockedBatchNormGrad") continue;
    of_x += node.attrs.at("relu_of_x").get<bool>();
    of_y += node.attrs.at("relu").get<bool>();
    EXPECT_EQ(step.shape(node.inputs.back()).rank(), node.attrs.at("relu").get<bool>() ? 4 : 1) << node.name;
  }
  EXPECT_EQ(of_x, 1);
  EXPECT_EQ(of_y, 1);
}

TEST_F(FuseNorms, ReadsTheMaskOffYWhereTheOffsetChangesMeanwhile) {
  const Output x = images("x");
  const Variable offset(s.named("offset"), zeros(s, DType::f32, {16}));
  const auto numbers = [&] {
    return constant(s, detail::converted<double>(test_numbers({16}, ++salt), DType::f32));
  };
  const Output y = relu(s, batch_norm(s, x, numbers(), offset.read(), numbers(), numbers()).y);
  const Operation changed(assign_add(s, offset, numbers()));
  const Fetch to_x = gradient(y, x);
  StepGraph step = placed_step({to_x, changed});
  rewrite(step, both());
  EXPECT_TRUE(std::any_of(step.nodes.begin(), step.nodes.end(), [](const StepNode& node) {
    return node.schema->name() == "BlockedBatchNormGrad" && node.attrs.at("relu").get<bool>();
  }));
}

// A gradient that was not made by the norm's own function.
TEST_F(FuseNorms, ReadsTheMaskOffYWhereTheGradientHasAnotherMean) {
  const Output x = images("x");
  const auto numbers = [&](const Shape& shape) {
    return constant(s, detail::converted<double>(test_numbers(shape, ++salt), DType::f32));
  };
  const Output scale = numbers({16});
  const BatchNormResult norm = batch_norm(s, x, scale, numbers({16}), numbers({16}), numbers({16}));
  const Output y = relu(s, norm.y);
  const Output dy(s.add("ReluGrad", {numbers(y.shape()), y}));
  for (const Output& mean : {norm.mean, norm.moving_mean}) {
    const Operation made = s.add("BatchNormGrad", {x, scale, mean, norm.variance, dy}, {{"epsilon", 1e-3}});
    StepGraph step = placed_step({y, made.output(0), made.output(1), made.output(2)});
    rewrite(step, both());
    EXPECT_EQ(std::any_of(step.nodes.begin(), step.nodes.end(),
                          [](const StepNode& node) {
                            return node.schema->name() == "BlockedBatchNormGrad" &&
                                   node.attrs.at("relu_of_x").get<bool>();
                          }),
              mean.index == norm.mean.index);
  }
}

TEST_F(FuseNorms, LeavesWhatIsReadElsewhere) {
  const Output y = norm(images("x")).y;
  EXPECT_THAT(ops_of_step({relu(s, y), y}), Contains("Relu"));
  EXPECT_THAT(ops_of_step({relu(s, y), square(s, y)}), Contains("Relu"));
}

TEST_F(FuseNorms, LeavesASumWithWhatComesBehindTheNorm) {
  const BatchNormResult first = norm(images("x"));
  const Output later = images("z");
  EXPECT_THAT(ops_of_step({relu(s, add(s, first.y, later))}), Contains("Add"));
}

TEST_F(FuseNorms, LeavesARectifierThatSomethingWaitsFor) {
  const Output y = relu(s, norm(images("x")).y);
  const Output behind = identity(s.control_dependencies({Operation(y.node)}), constant(s, 1.0f));
  EXPECT_THAT(ops_of_step({y, behind}), Contains("Relu"));
}

// Steps of a GPU, on whatever computes them.
struct FuseLayerNorms : ::testing::TestWithParam<DType> {
  Output numbers(const char* name, const Shape& shape) {
    const Output x = placeholder(s.named(name), GetParam(), shape);
    feeds.emplace_back(x, detail::converted<double>(test_numbers(shape, ++salt), GetParam()));
    return x;
  }
  Output norm(Output x, const char* name = "norm") { return layer_norm(s.named(name), x, scale, offset); }
  Output biased(Output x) { return bias_add(s, x, numbers("bias", {5})); }
  Fetch gradient(Output y, Output x) {
    const Tensor weights = detail::converted<double>(test_numbers(y.shape(), 50), GetParam());
    return gradients(s, {y}, {x}, {constant(s, weights)})[0];
  }
  std::vector<std::string> ops_on(const char* kind, const std::vector<Fetch>& fetches) {
    StepGraph step = placed_step(fetches);
    for (StepNode& node : step.nodes) node.device = local_device_name(kind, 0);
    rewrite(step, only("fuse_norms"));
    return ops_of(step);
  }
  std::vector<std::string> ops(const std::vector<Fetch>& fetches) { return ops_on("GPU", fetches); }
  // Of the graph's nodes, whose device is a virtual GPU's where there is one.
  void expect_same_bits(const std::vector<Fetch>& fetches) {
    GraphOptions with = only("fuse_norms");
    with.precision = Precision::f32;
    kolo::expect_same_bits(graph, fetches, feeds, {.graph_options = with},
                           {.optimizer_level = OptimizerLevel::l0, .precision = Precision::f32});
  }

  Graph graph;
  Scope s{graph};
  Feeds feeds;
  int salt = 0;
  Output scale = numbers("scale", {5}), offset = numbers("offset", {5});
};

TEST_P(FuseLayerNorms, TakeTheSumThatTheyAreOfAndTheBiasOfATerm) {
  const Output x = numbers("x", {4, 5}), z = numbers("z", {4, 5});
  for (const bool is_first : {false, true}) {
    const Output term = biased(z), h = is_first ? add(s, term, x) : add(s, x, term), y = norm(h);
    const std::vector<Fetch> fetches{h, y, gradient(add(s, h, y), x)};
    EXPECT_THAT(ops(fetches), Contains(detail::kSumLayerNormOp));
    EXPECT_THAT(ops(fetches), Not(Contains("BiasAdd")));
    EXPECT_THAT(ops(fetches), Contains(detail::kSumLayerNormGradOp));
    EXPECT_THAT(ops(fetches), Not(Contains("AddN")));
    expect_same_bits(fetches);
  }
}

TEST_P(FuseLayerNorms, StayOnACpu) {
  const Output x = numbers("x", {4, 5}), h = add(s, x, numbers("z", {4, 5})), y = norm(h);
  EXPECT_THAT(ops_on("CPU", {h, y, gradient(add(s, h, y), x)}),
              ::testing::IsSupersetOf({"Add", "AddN", "LayerNorm", "LayerNormGrad"}));
}

TEST_P(FuseLayerNorms, LeaveSumsOfOtherShapesAndBiasesThatOthersRead) {
  const Output x = numbers("x", {4, 5}), row = numbers("row", {5}), term = biased(numbers("z", {4, 5}));
  EXPECT_THAT(ops({norm(add(s, x, row))}), Contains("LayerNorm"));
  EXPECT_THAT(ops({norm(add(s, x, term)), term}), Contains("BiasAdd"));
  expect_same_bits({norm(add(s, x, term)), term});
  // A bias of channels that are no columns.
  const Output images = numbers("images", {2, 5, 3, 5});
  EXPECT_THAT(ops({norm(add(s, images, bias_add(s, images, numbers("of_channels", {5}))))}),
              Contains("BiasAdd"));
}

TEST_P(FuseLayerNorms, LeaveASumThatTheirScaleFollowsFrom) {
  const Output h = add(s, numbers("x", {4, 5}), numbers("z", {4, 5}));
  const Output y = layer_norm(s, h, reduce_sum(s, h, {.axes = {0}}), offset);
  EXPECT_THAT(ops({y}), Contains("LayerNorm"));
  expect_same_bits({y});
}

TEST_P(FuseLayerNorms, LeaveASumThatSomethingWaitsFor) {
  const Output h = add(s, numbers("x", {4, 5}), numbers("z", {4, 5}));
  const Output behind = identity(s.control_dependencies({Operation(h.node)}), constant(s, 1.0f));
  EXPECT_THAT(ops({norm(h), behind}), Contains("LayerNorm"));
}

TEST_P(FuseLayerNorms, LeaveASumOfAVariableThatChangesMeanwhile) {
  const Variable v(s.named("v"), zeros(s, GetParam(), {4, 5}));
  const Output x = numbers("x", {4, 5}), h = add(s, v.read(), x);
  const Operation changed(assign_add(s, v, x));
  EXPECT_THAT(ops({norm(h), changed}), Contains("LayerNorm"));
  EXPECT_THAT(ops({norm(add(s, v.read(), x), "later"), changed}), Contains(detail::kSumLayerNormOp));
}

TEST_P(FuseLayerNorms, TakeOneSumOnce) {
  const Output h = add(s, numbers("x", {4, 5}), numbers("z", {4, 5}));
  const std::vector<Fetch> fetches{norm(h, "one"), norm(h, "two"), h};
  EXPECT_THAT(ops(fetches),
              ::testing::IsSupersetOf({std::string(detail::kSumLayerNormOp), std::string("LayerNorm")}));
  expect_same_bits(fetches);
}

INSTANTIATE_TEST_SUITE_P(Types, FuseLayerNorms, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& tested) { return tested.param == DType::f32 ? "f32" : "f64"; });

}  // namespace
}  // namespace kolo
