#include <kolo/core/passes/memory.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include <kolo/core/ops/basic.h>
#include <kolo/core/passes/prune.h>
#include <tests/core/test_ops.h>

namespace kolo {
namespace {

using testing::add;
using testing::call;
constexpr std::int64_t kElements = 4096;  // 16 KiB of f32: large enough to be reused
constexpr std::size_t kBytes = kElements * 4;

MemoryPlan plan_for(StepGraph& step, std::vector<std::size_t> scratch = {}) {
  scratch.resize(step.nodes.size());
  return plan_memory(step, topological_order(step), scratch);
}

StepGraph step_for(const Output& fetch) {
  return prune({.fetched = {fetch}, .targets = {fetch.node}, .fed = {}});
}

TEST(PlanMemory, NeedsTwoBuffersForAChainOfAnyLength) {
  Graph graph;
  const Scope s(graph);
  Output x = call(s, 1, {}, {kElements});
  for (int i = 0; i < 10; ++i) x = call(s, i, {x}, {kElements});
  StepGraph step = step_for(x);
  const MemoryPlan plan = plan_for(step);
  EXPECT_EQ(plan.arena_bytes, 2 * kBytes);
  EXPECT_EQ(plan.unplanned_bytes, 11 * kBytes);
}

TEST(PlanMemory, WritesOverAnInputThatNobodyReadsLater) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1, {}, {kElements}), b = call(s, 2, {}, {kElements});
  StepGraph step = step_for(add(s, add(s, a, b), b));
  EXPECT_EQ(plan_for(step).arena_bytes, 2 * kBytes);
}

TEST(PlanMemory, DoesNotWriteOverAnInputOfFewerElementsThatFillsAsManyBytes) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1, {}, {1}), b = call(s, 2, {}, {16});
  StepGraph step = step_for(s.add("Add", {a, b}));
  const MemoryPlan plan = plan_for(step);
  const int sum = step.fetches[0].node;
  EXPECT_NE(plan.values[sum][0].offset, plan.values[step.nodes[sum].inputs[0].node][0].offset);
}

TEST(PlanMemory, KeepsAnInputThatIsReadTwiceByTheSameNode) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1, {}, {kElements});
  StepGraph step = step_for(add(s, a, a));
  EXPECT_EQ(plan_for(step).arena_bytes, 2 * kBytes);
}

TEST(PlanMemory, KeepsFetchedValuesToTheEnd) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1, {}, {kElements});
  Output x = a;
  for (int i = 0; i < 4; ++i) x = call(s, i, {x}, {kElements});
  StepGraph step = prune({.fetched = {a, x}, .targets = {a.node, x.node}, .fed = {}});
  EXPECT_EQ(plan_for(step).arena_bytes, 3 * kBytes);
}

TEST(PlanMemory, GivesScratchItsPlaceWhileItsNodeRuns) {
  Graph graph;
  const Scope s(graph);
  StepGraph step = step_for(call(s, 2, {call(s, 1, {}, {kElements})}, {kElements}));
  const MemoryPlan plan = plan_for(step, {0, 3 * kBytes});
  EXPECT_EQ(plan.arena_bytes, 5 * kBytes);
  EXPECT_EQ(plan.scratch_offsets[1], 0u) << "the largest block is placed first";
}

TEST(PlanMemory, DoesNotPlanWhatLiesElsewhere) {
  Graph graph;
  const Scope s(graph);
  const Output c = constant(s, Tensor::zeros(DType::f32, {kElements}));
  StepGraph step = step_for(identity(s, c));
  const MemoryPlan plan = plan_for(step);
  EXPECT_EQ(plan.arena_bytes, 0u);
  EXPECT_EQ(plan.values[1][0].kind, ValueMemory::Kind::constant);
}

// Every pair of nodes of which one writes a buffer's memory and the other uses an earlier buffer there must
// be ordered by edges, whatever thread runs them.
class Reachability {
 public:
  explicit Reachability(const StepGraph& step)
      : before_(step.nodes.size(), std::vector<bool>(step.nodes.size())) {
    for (const int node : topological_order(step)) {
      const auto inherit = [&](int from) {
        before_[node][from] = true;
        for (std::size_t i = 0; i < before_.size(); ++i)
          if (before_[from][i]) before_[node][i] = true;
      };
      for (const StepValue in : step.nodes[node].inputs) inherit(in.node);
      for (const int control : step.nodes[node].control_inputs) inherit(control);
      for (const int earlier : step.nodes[node].after) inherit(earlier);
    }
  }
  bool ordered(int first, int then) const { return first == then || before_[then][first]; }

 private:
  std::vector<std::vector<bool>> before_;
};

void expect_safe_under_any_schedule(const StepGraph& step, const MemoryPlan& plan) {
  const Reachability reach(step);
  const int n = static_cast<int>(step.nodes.size());
  const auto users = [&](int v) {
    std::vector<int> list = {v};
    for (int i = 0; i < n; ++i)
      for (const StepValue in : step.nodes[i].inputs)
        if (in.node == v) list.push_back(i);
    return list;
  };
  const auto bytes = [&](int v) { return step.shape({v, 0}).elements() * 4; };
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b) {
      const auto from_a = static_cast<std::int64_t>(plan.values[a][0].offset),
                 from_b = static_cast<std::int64_t>(plan.values[b][0].offset);
      if (a == b || from_a + bytes(a) <= from_b || from_b + bytes(b) <= from_a) continue;
      const auto of_a = users(a), of_b = users(b);
      const bool a_first = std::all_of(of_a.begin(), of_a.end(), [&](int u) { return reach.ordered(u, b); });
      const bool b_first = std::all_of(of_b.begin(), of_b.end(), [&](int u) { return reach.ordered(u, a); });
      ASSERT_TRUE(a_first || b_first)
          << step.nodes[a].name << " and " << step.nodes[b].name << " share memory unordered";
    }
}

TEST(PlanMemory, OrdersEveryPairThatSharesMemoryInRandomGraphs) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    Graph graph;
    const Scope s(graph);
    Outputs values;
    for (int i = 0; i < 40; ++i) {
      Outputs inputs;
      for (int k = 0; k < static_cast<int>(random() % 3) && !values.empty(); ++k)
        inputs.push_back(values[random() % values.size()]);
      values.push_back(call(s, i, inputs, {1024 * (1 + static_cast<std::int64_t>(random() % 4))}));
      if (inputs.size() == 2 && inputs[0].shape() == inputs[1].shape())
        values.push_back(add(s, inputs[0], inputs[1]));
    }
    StepSignature signature;
    for (const Output& v : values)
      if (random() % 4 == 0) signature.fetched.push_back(v), signature.targets.push_back(v.node);
    StepGraph step = prune(signature);
    const MemoryPlan plan = plan_for(step);
    expect_safe_under_any_schedule(step, plan);
  }
}

// With an edge from every earlier user there would be some 125,000.
TEST(PlanMemory, GivesALongChainOfNodesThatWriteInPlaceFewEdges) {
  Graph graph;
  const Scope s(graph);
  const Output step_size = call(s, 1, {}, {kElements});
  Output x = call(s, 2, {}, {kElements});
  for (int i = 0; i < 500; ++i) x = add(s, x, step_size);
  StepGraph step = step_for(x);
  EXPECT_EQ(plan_for(step).arena_bytes, 2 * kBytes);
  std::size_t edges = 0;
  for (const StepNode& node : step.nodes) edges += node.after.size();
  EXPECT_LE(edges, step.nodes.size());
}

}  // namespace
}  // namespace kolo
