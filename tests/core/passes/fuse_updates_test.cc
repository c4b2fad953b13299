#include <kolo/core/passes/pipeline.h>

#include <gmock/gmock.h>

#include <utility>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/training.h>
#include <kolo/core/passes/prune.h>
#include <tests/core/counted_loop.h>

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

struct FuseUpdates : ::testing::Test {
  Variable variable(const std::string& name, std::int64_t elements = 2) {
    return Variable(s.named(name), zeros(s, DType::f32, {elements}));
  }
  Operation update(const Variable& v, Output rate_of_it = {}) {
    const Output gradient = fill(s.named(v.name() + "_gradient"), v.dtype(), v.shape(), 1);
    return apply_update(
        s.named(v.name() + "_update"),
        {.rule = "GradientDescent", .variable = v, .slots = {}, .scalars = {rate_of_it ? rate_of_it : rate}},
        gradient);
  }
  // The step of `targets` after the pass.
  StepGraph fused(const std::vector<Operation>& targets, const Outputs& fetches = {}) {
    StepSignature signature;
    for (const Output& fetch : fetches)
      signature.fetched.push_back(fetch), signature.targets.push_back(fetch.node);
    for (const Operation& target : targets)
      signature.fetched.push_back({}), signature.targets.push_back(target.node);
    StepGraph step = prune(signature);
    fuse_updates(step);
    return step;
  }
  // The ops that update, in the order in which they stand.
  static std::vector<std::string> updates(const StepGraph& step) {
    std::vector<std::string> ops;
    for (const StepNode& node : step.nodes)
      if (node.schema->name().find("Apply") != std::string::npos) ops.push_back(node.schema->name());
    return ops;
  }
  static const StepNode& node_of(const StepGraph& step, const std::string& op) {
    for (const StepNode& node : step.nodes)
      if (node.schema->name() == op) return node;
    throw NotFoundError("no {}", op);
  }
  static std::vector<std::string> input_names(const StepGraph& step, const StepNode& node) {
    std::vector<std::string> names;
    for (const StepValue in : node.inputs) names.push_back(step.nodes[in.node].name);
    return names;
  }

  Graph graph;
  Scope s{graph};
  Output rate = constant(s.named("rate"), 0.5f);
  Variable a = variable("a"), b = variable("b");
};

const std::vector<std::string> kOne = {"FusedApplyGradientDescent"};
const std::vector<std::string> kTwo = {"ApplyGradientDescent", "ApplyGradientDescent"};

TEST_F(FuseUpdates, PutsOneNodeInThePlaceOfSeveral) {
  const Operation first = update(a), second = update(b);
  const StepGraph step = fused({first, second});
  EXPECT_EQ(updates(step), kOne);
  EXPECT_THAT(input_names(step, node_of(step, kOne[0])),
              ElementsAre("a", "b", "rate", "a_gradient", "b_gradient"));
}

TEST_F(FuseUpdates, MakesWhoWaitedForOneWaitForAll) {
  const Operation first = update(a), second = update(b);
  const StepGraph step = fused({group(s.named("done"), {first, second})});
  ASSERT_EQ(updates(step), kOne);
  const StepNode& done = node_of(step, "NoOp");
  ASSERT_EQ(done.control_inputs.size(), 1u);
  EXPECT_EQ(step.nodes[done.control_inputs[0]].schema->name(), kOne[0]);
  EXPECT_EQ(topological_order(step).size(), step.nodes.size());
}

TEST_F(FuseUpdates, LeavesASingleUpdate) {
  EXPECT_THAT(updates(fused({update(a)})), ElementsAre("ApplyGradientDescent"));
}

TEST_F(FuseUpdates, LeavesUpdatesOfOtherRates) {
  const Operation first = update(a), second = update(b, constant(s, 0.25f));
  EXPECT_EQ(updates(fused({first, second})), kTwo);
}

TEST_F(FuseUpdates, LeavesUpdatesWhoseResultIsFetched) {
  const Operation first = update(a), second = update(b);
  EXPECT_EQ(updates(fused({first, second}, {first})), kTwo);
}

TEST_F(FuseUpdates, LeavesUpdatesBetweenWhichTheVariableIsRead) {
  const Operation first = update(a);
  const Output seen = zeros_like(s, a);
  const Operation second = update(b);
  EXPECT_EQ(updates(fused({first, seen.node, second})), kTwo);
}

TEST_F(FuseUpdates, LeavesUpdatesBetweenWhichAGradientIsOverwritten) {
  const Variable sum = variable("sum");
  const auto apply = [&](const Variable& v, const Output& gradient) {
    return Operation(
        apply_update(s, {.rule = "GradientDescent", .variable = v, .slots = {}, .scalars = {rate}}, gradient)
            .node);
  };
  const Operation first = apply(a, sum.read());
  const Operation zeroed = assign(s, sum, zeros(s, DType::f32, {2})).node;
  const Operation second = apply(b, ones(s, DType::f32, {2}));
  EXPECT_EQ(updates(fused({first, zeroed, second})), kTwo);
}

TEST_F(FuseUpdates, LeavesAnUpdateThatWaitsForAnotherItself) {
  const Operation first = update(a);
  const Operation second =
      apply_update(s.control_dependencies({first}),
                   {.rule = "GradientDescent", .variable = b, .slots = {}, .scalars = {rate}},
                   ones(s, DType::f32, {2}))
          .node;
  EXPECT_EQ(updates(fused({first, second})), kTwo);
}

TEST_F(FuseUpdates, LeavesUpdatesOfWhichOneWaitsForTheOther) {
  const Operation first = update(a);
  const Output between = zeros_like(s.control_dependencies({first}), rate);
  const Operation second = update(b);
  EXPECT_EQ(updates(fused({first, between.node, second})), kTwo);
}

TEST_F(FuseUpdates, LeavesUpdatesThatABranchMaySkip) {
  const Variable c = variable("c"), d = variable("d");
  std::vector<Operation> all = {update(a), update(b)};
  const auto in_branch = [&](const Scope& branch) {
    const Scope outside = std::exchange(s, branch);
    all.insert(all.end(), {update(c), update(d)});
    s = outside;
    return Outputs{rate};
  };
  cond(s, constant(s, Tensor::scalar(true)), in_branch, [&](const Scope&) { return Outputs{rate}; });
  EXPECT_THAT(updates(fused(all)), UnorderedElementsAre("FusedApplyGradientDescent", "ApplyGradientDescent",
                                                        "ApplyGradientDescent"));
}

TEST_F(FuseUpdates, LeavesTwoUpdatesOfOneVariable) {
  const Operation first = update(a), second = update(a);
  EXPECT_EQ(updates(fused({first, second})), kTwo);
}

TEST_F(FuseUpdates, LeavesLargeVariables) {
  const Variable c = variable("c", kLargestFused + 1);
  const Operation first = update(a), second = update(b), third = update(c);
  EXPECT_THAT(updates(fused({first, second, third})),
              UnorderedElementsAre("FusedApplyGradientDescent", "ApplyGradientDescent"));
}

TEST_F(FuseUpdates, FusesWhatWaitsForOneReductionWithNothingElse) {
  const Variable c = variable("c", kLargestFused + 1);
  const std::vector<Operation> all = {update(a), update(b), update(c)};
  StepSignature signature;
  for (const Operation& one : all) signature.fetched.push_back({}), signature.targets.push_back(one.node);
  StepGraph step = prune(signature);
  // a's gradient is reduced by itself, those of b and c by one node, which is made by hand here.
  const int bucket = step.add("NoOp", "bucket", {}, {}, 0);
  step.nodes[bucket].dtypes = {DType::f32, DType::f32};
  step.nodes[bucket].shapes = {b.shape(), c.shape()};
  int outputs = 0;
  for (StepNode& node : step.nodes) {
    if (node.schema->name() != "ApplyGradientDescent") continue;
    if (node.name != "a_update") node.inputs.back() = {bucket, outputs++};
    step.placements[node.inputs.back()] = {};
  }
  fuse_updates(step);
  EXPECT_THAT(updates(step), UnorderedElementsAre("FusedApplyGradientDescent", "ApplyGradientDescent"));
  const StepNode& one = node_of(step, "FusedApplyGradientDescent");
  EXPECT_THAT(input_names(step, one), ElementsAre("b", "c", "rate", "bucket", "bucket"));
  EXPECT_THAT(one.control_inputs, IsEmpty());
}

TEST_F(FuseUpdates, KeepsUpdatesApartWhereALoopBetweenThemReadsAVariable) {
  const Variable a = variable("a"), b = variable("b");
  const Operation first = update(a);
  const Output loop =
      testing::counted_loop(s, 2, [&](const Scope& body) -> Operation { return identity(body, a.ref()); });
  const Operation second = update(b);
  EXPECT_THAT(updates(fused({first, loop, second})),
              ElementsAre("ApplyGradientDescent", "ApplyGradientDescent"));
}

}  // namespace
}  // namespace kolo
