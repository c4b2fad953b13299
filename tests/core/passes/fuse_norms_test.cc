#include <gmock/gmock.h>

#include <cstring>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/kernels/cpu/conv/image_blocks.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/normalization.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/gradient_check.h"
#include "tests/core/passes/placed_step.h"

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
    const auto with = Session(graph, {.graph_options = both()}).run(fetches, feeds);
    const auto without = Session(graph, {.graph_options = only("layout")}).run(fetches, feeds);
    for (std::size_t i = 0; i < with.size(); ++i)
      EXPECT_EQ(std::memcmp(with[i].raw(), without[i].raw(), with[i].bytes()), 0) << "fetch " << i;
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

}  // namespace
}  // namespace kolo
