#include <kolo/core/passes/step_graph.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/prune.h>
#include <tests/core/counted_loop.h>
#include <tests/core/test_ops.h>

namespace kolo {
namespace {

using testing::call;
using ::testing::ElementsAre;

std::vector<std::string> names(const StepGraph& step) {
  std::vector<std::string> list;
  for (const StepNode& node : step.nodes) list.push_back(node.name);
  return list;
}

StepGraph step_for(const std::vector<Operation>& targets,
                   const std::vector<std::pair<Output, Shape>>& fed = {}) {
  StepSignature signature;
  for (const Operation& target : targets)
    signature.fetched.push_back({}), signature.targets.push_back(target.node);
  signature.fed = fed;
  return prune(signature);
}

const StepNode& node_named(const StepGraph& step, const std::string& name) {
  for (const StepNode& node : step.nodes)
    if (node.name == name) return node;
  throw NotFoundError("no node {}", name);
}

bool waits_for(const StepGraph& step, const std::string& node, const std::string& before) {
  for (const int control : node_named(step, node).control_inputs)
    if (step.nodes[control].name == before) return true;
  for (const int earlier : node_named(step, node).after)
    if (step.nodes[earlier].name == before) return true;
  for (const StepValue in : node_named(step, node).inputs)
    if (step.nodes[in.node].name == before) return true;
  return false;
}

TEST(Prune, KeepsAncestorsByInputsAndControlEdgesAlone) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1), b = call(s, 2), unused = call(s, 3);
  const Output c = call(s.control_dependencies({b}), 4, {a});
  EXPECT_THAT(names(step_for({c})), ElementsAre("call1", "call2", "call4"));
  (void)unused;
}

TEST(Prune, CutsAtFedTensors) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1), b = call(s, 2, {a}), c = call(s, 3, {b});
  const StepGraph step = step_for({c}, {{b, Shape()}});
  EXPECT_THAT(names(step), ElementsAre("call2", "call3"));
  EXPECT_EQ(step.nodes[0].schema->name(), kFeedOp);
}

TEST(Prune, KeepsAFedTensorsProducerThatAControlEdgeNeeds) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1), b = call(s, 2, {a});
  const Output c = call(s.control_dependencies({b}), 3, {b});
  const Output d = call(s.control_dependencies({b}), 4);
  EXPECT_EQ(step_for({c, d}, {{b, Shape()}}).nodes.size(), 5u) << "feed of b, a, b, c, d";
}

TEST(Prune, LeavesNothingOfAFedPlaceholderButItsFeed) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s.named("x"), DType::f32, Shape());
  const Output d = placeholder_with_default(s.named("d"), call(s, 1), Shape());
  const Output y = call(s.control_dependencies({x, d}), 2);
  const StepGraph step = step_for({y, x}, {{x, Shape()}, {d, Shape()}});
  EXPECT_THAT(names(step), ElementsAre("x", "d", "call2"));
  EXPECT_THAT(step.nodes[2].control_inputs, ::testing::IsEmpty());
}

TEST(Prune, InfersShapesFromWhatIsFed) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1, 3});
  const Output y = identity(s, x);
  const StepGraph step = step_for({y}, {{x, Shape{5, 3}}});
  EXPECT_EQ(step.nodes.back().shapes[0], (Shape{5, 3}));
}

TEST(OrderUpdates, RunsOlderReadersBeforeAnUpdateAndNewerOnesAfterIt) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  const Output older = call(s, 1, {v.read()});
  const Output update = assign_add(s, v, constant(s, 2.0f));
  const Output newer = call(s, 2, {v.read()});
  StepGraph step = step_for({older, update, newer});
  order_updates(step);
  EXPECT_TRUE(waits_for(step, "AssignAdd", "call1"));
  EXPECT_TRUE(waits_for(step, "call2", "AssignAdd"));
  EXPECT_EQ(topological_order(step).size(), step.nodes.size());
}

TEST(OrderUpdates, CopiesAFetchThatALaterUpdateWouldChange) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  const Output update = assign_add(s, v, constant(s, 2.0f));
  StepGraph step = prune({.fetched = {v.read(), update}, .targets = {v.read().node, update.node}, .fed = {}});
  order_updates(step);
  EXPECT_EQ(step.nodes[step.fetches[0].node].schema->name(), kCopyOp);
  EXPECT_TRUE(waits_for(step, "AssignAdd", "v/read/fetched"));
}

TEST(KeepReadValues, CopiesOnceWhatTwoReadersSeeAfterAnUpdate) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  const Output old = identity(s.named("old"), v);
  const Output update = assign_add(s, v, constant(s, 2.0f));
  StepGraph step = step_for({call(s, 1, {old}), call(s, 2, {old, update})});
  const std::size_t nodes = step.nodes.size();
  keep_read_values(step);
  order_updates(step);
  EXPECT_EQ(step.nodes.size(), nodes + 1);
  for (const char* reader : {"call1", "call2"}) EXPECT_TRUE(waits_for(step, reader, "old/kept")) << reader;
  EXPECT_TRUE(waits_for(step, "AssignAdd", "old/kept"));
  EXPECT_EQ(topological_order(step).size(), step.nodes.size());
}

TEST(KeepReadValues, CopiesNothingThatIsReadInTime) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f)), w(s.named("w"), constant(s, 1.0f));
  const Output old = identity(s, v), other = identity(s, w);
  const Output older = call(s, 1, {old}), update = assign_add(s, v, old);
  StepGraph step = step_for({older, update, call(s, 2, {v.read(), update, other})});
  const std::size_t nodes = step.nodes.size();
  keep_read_values(step);
  EXPECT_EQ(step.nodes.size(), nodes);
}

TEST(OrderUpdates, LeavesStepsWithoutUpdatesAlone) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  StepGraph step = step_for({call(s, 1, {v.read()})});
  order_updates(step);
  for (const StepNode& node : step.nodes) EXPECT_TRUE(node.after.empty()) << node.name;
}

TEST(OrderUpdates, TakesALoopForAnUpdateOfWhatItsBodyUpdates) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f)), w(s.named("w"), constant(s, 1.0f));
  const Output older = call(s, 1, {v.read()});
  const Output loop = testing::counted_loop(s, 2, [&](const Scope& outer) -> Operation {
    return testing::counted_loop(
        outer, 2, [&](const Scope& b) -> Operation { return assign_add(b, v, constant(b, 2.0f)); });
  });
  const Output newer = call(s, 2, {v.read()}), other = call(s, 3, {w.read()});
  StepGraph step = step_for({older, loop, newer, other});
  order_updates(step);
  EXPECT_TRUE(waits_for(step, "while/loop", "call1"));
  EXPECT_TRUE(waits_for(step, "call2", "while/loop"));
  EXPECT_FALSE(waits_for(step, "call3", "while/loop"));
}

TEST(OrderUpdates, TakesALoopForAReaderOfWhatItsBodyReads) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  const Output loop = testing::counted_loop(
      s, 2, [&](const Scope& b) -> Operation { return call(b, 1, {identity(b, v.ref())}); });
  const Output update = assign_add(s, v, constant(s, 2.0f));
  StepGraph step = step_for({loop, update});
  order_updates(step);
  EXPECT_TRUE(waits_for(step, "AssignAdd", "while/loop"));
}

TEST(OrderUpdates, OrdersTwoLoopsThatUpdateOneVariable) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  const auto update = [&](const Scope& b) -> Operation { return assign_add(b, v, constant(b, 2.0f)); };
  StepGraph step = step_for({testing::counted_loop(s, 2, update), testing::counted_loop(s, 2, update)});
  order_updates(step);
  EXPECT_TRUE(waits_for(step, "while_1/loop", "while/loop"));
}

TEST(OrderUpdates, CopiesWhatALoopIsGivenOfAVariableThatItUpdates) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), fill(s, DType::f64, Shape{}, 1));
  const Outputs finals = while_loop(
      s, [](const Scope& c, const Outputs& x) { return less(c, x[0], fill(c, DType::f64, Shape{}, 3)); },
      [&](const Scope& b, const Outputs& x) { return Outputs{sub(b, x[0], assign_add(b, v, x[0]))}; }, {v});
  StepGraph step = step_for({finals[0]});
  order_updates(step);
  const StepValue given = node_named(step, "while/loop").inputs[0];
  EXPECT_EQ(step.nodes[given.node].schema->name(), kCopyOp);
}

// With an edge between every two uses there would be some 45,000.
TEST(OrderUpdates, GivesAVariableOfManyUsesFewEdges) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  std::vector<Operation> uses;
  for (int i = 0; i < 150; ++i) {
    uses.push_back(assign_add(s, v, constant(s, 2.0f)));
    uses.push_back(call(s, i, {v.read()}));
  }
  StepGraph step = step_for(uses);
  order_updates(step);
  std::size_t edges = 0;
  for (const StepNode& node : step.nodes) edges += node.after.size();
  EXPECT_LE(edges, 2 * uses.size());
  EXPECT_TRUE(waits_for(step, "call0", "AssignAdd"));
  EXPECT_TRUE(waits_for(step, "AssignAdd_1", "call0"));
}

TEST(StepGraph, NamesTheReadersOfEachNode) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1), b = call(s, 2, {a, a});
  const StepGraph step = step_for({call(s, 3, {a, b})});
  EXPECT_THAT(step.users(), ElementsAre(ElementsAre(1, 1, 2), ElementsAre(2), ElementsAre()));
}

TEST(StepGraph, KeepsWhatNodesSayOfEachOtherWhenSomeAreTakenOut) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1), unused = call(s, 2), b = call(s, 3, {a}), c = call(s, 4, {b});
  StepGraph step = step_for({c, unused});
  step.nodes[3].control_inputs = {0};
  step.nodes[3].after = {2};
  step.fetches = {{2, 0}, {}};
  step.placements[{3, 0}] = {};
  step.ends = {3};
  step.compact({true, false, true, true});
  EXPECT_THAT(names(step), ElementsAre("call1", "call3", "call4"));
  EXPECT_THAT(step.nodes[2].inputs, ElementsAre(StepValue{1, 0}));
  EXPECT_THAT(step.nodes[2].control_inputs, ElementsAre(0));
  EXPECT_THAT(step.nodes[2].after, ElementsAre(1));
  EXPECT_EQ(step.fetches[0], (StepValue{1, 0}));
  EXPECT_EQ(step.fetches[1].node, -1);
  EXPECT_EQ(step.placements.begin()->first, (StepValue{2, 0}));
  EXPECT_THAT(step.ends, ElementsAre(2));
}

}  // namespace
}  // namespace kolo
