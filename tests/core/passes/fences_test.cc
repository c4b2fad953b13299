#include <kolo/core/passes/fences.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include <kolo/core/ops/variables.h>
#include <kolo/core/passes/transfer.h>
#include <tests/core/passes/step_for.h>
#include <tests/core/test_ops.h>

namespace kolo {
namespace {

using testing::call;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::local_placer;
using testing::node_named;
using ::testing::SizeIs;
using testing::step_for;
using ::testing::UnorderedElementsAre;

DeviceSet devices() {
  DeviceOptions options;
  options.virtual_gpus.assign(2, {.total_bytes = std::int64_t{1} << 20});
  return make_devices(options);
}

StepGraph with_fences(StepGraph step) {
  Placements placements;
  place(step, local_placer({"CPU:0", "GPU:0", "GPU:1"}), placements);
  const DeviceSet all = devices();
  insert_transfers(step, host_of(step, all));
  insert_fences(step, all);
  return step;
}

std::vector<std::string> names(const StepGraph& step, const std::vector<int>& nodes) {
  std::vector<std::string> all;
  for (const int n : nodes) all.push_back(step.nodes[static_cast<std::size_t>(n)].name);
  return all;
}

int count(const StepGraph& step, const std::string& op) {
  return static_cast<int>(std::count_if(step.nodes.begin(), step.nodes.end(),
                                        [&](const StepNode& node) { return node.schema->name() == op; }));
}

// The fences that a node waits for.
std::vector<const StepNode*> fences_before(const StepGraph& step, const char* name) {
  std::vector<const StepNode*> fences;
  for (const int n : node_named(step, name).after)
    if (const StepNode& node = step.nodes[static_cast<std::size_t>(n)]; node.schema->name() == kFenceOp)
      fences.push_back(&node);
  return fences;
}

TEST(InsertFences, PutsOneForEachStreamBeforeAHostNodeThatComesAfterIt) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s.device("/gpu:0"), 1), b = call(s.device("/gpu:0"), 2),
               c = call(s.device("/gpu:1"), 3);
  const Scope after =
      s.device("/cpu:0").control_dependencies({Operation(a.node), Operation(b.node), Operation(c.node)});
  const StepGraph step = with_fences(step_for({call(after, 4)}));
  std::vector<std::vector<std::string>> waited_for;
  for (const StepNode* fence : fences_before(step, "call4")) waited_for.push_back(names(step, fence->after));
  EXPECT_THAT(waited_for, ElementsAre(UnorderedElementsAre("call1", "call2"), ElementsAre("call3")));
}

TEST(InsertFences, LeavesOutWhatAnotherImplies) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s.device("/gpu:0"), 1), b = call(s.device("/gpu:1"), 2, {a});
  const Scope after = s.device("/cpu:0").control_dependencies({Operation(a.node), Operation(b.node)});
  const StepGraph step = with_fences(step_for({call(after, 3)}));
  const auto fences = fences_before(step, "call3");
  ASSERT_THAT(fences, SizeIs(1));
  EXPECT_THAT(names(step, fences[0]->after), ElementsAre("call2"));
}

TEST(InsertFences, LeavesOutWhatANodeOfTheHostHasWaitedFor) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s.device("/gpu:0"), 1);
  const Scope host = s.device("/cpu:0").control_dependencies({Operation(a.node)});
  const Output b = call(host, 2);
  const StepGraph step = with_fences(step_for({call(host.control_dependencies({Operation(b.node)}), 3)}));
  EXPECT_THAT(fences_before(step, "call2"), SizeIs(1));
  EXPECT_THAT(fences_before(step, "call3"), IsEmpty());
}

TEST(InsertFences, PutsNoneBetweenNodesOfOneDevice) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output a = call(s, 1);
  const StepGraph step = with_fences(step_for({call(s.control_dependencies({Operation(a.node)}), 2)}));
  EXPECT_EQ(count(step, kFenceOp), 0);
}

TEST(InsertFences, PutsNoneBehindTheHost) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s.device("/cpu:0"), 1);
  const StepGraph step =
      with_fences(step_for({call(s.device("/gpu:0").control_dependencies({Operation(a.node)}), 2)}));
  EXPECT_EQ(count(step, kFenceOp), 0);
}

TEST(InsertFences, PutsOneBehindACopyToTheHostForAllItsReaders) {
  Graph graph;
  const Scope s(graph);
  const Output sent = call(s.device("/gpu:0"), 1);
  const StepGraph step =
      with_fences(step_for({call(s.device("/cpu:0"), 2, {sent}), call(s.device("/cpu:0"), 3, {sent})}));
  EXPECT_EQ(count(step, kRecvOp), 1);
  EXPECT_EQ(count(step, kFenceOp), 1);
  ASSERT_THAT(fences_before(step, "call2"), SizeIs(1));
  EXPECT_EQ(fences_before(step, "call3"), fences_before(step, "call2"));
  EXPECT_THAT(names(step, fences_before(step, "call2")[0]->after), ElementsAre(HasSubstr("_Recv")));
}

TEST(InsertFences, PutsNoneBehindACopyToAGpu) {
  Graph graph;
  const Scope s(graph);
  const StepGraph step = with_fences(step_for({call(s.device("/gpu:1"), 2, {call(s.device("/gpu:0"), 1)})}));
  EXPECT_EQ(count(step, kFenceOp), 0);
}

TEST(InsertFences, LetsTheHostWaitForNodesThatMayBeSkipped) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s.device("/gpu:0"), 1), b = call(s.device("/cpu:0"), 2);
  StepGraph step = step_for({a, b});
  const auto index = [&](const char* name) {
    return static_cast<int>(&node_named(step, name) - step.nodes.data());
  };
  step.nodes[static_cast<std::size_t>(index("call2"))].after = {index("call1")};
  const StepGraph fenced = with_fences(std::move(step));
  EXPECT_THAT(node_named(fenced, "call2").control_inputs, IsEmpty());
  ASSERT_THAT(fences_before(fenced, "call2"), SizeIs(1));
  EXPECT_THAT(fences_before(fenced, "call2")[0]->control_inputs, IsEmpty());
}

}  // namespace
}  // namespace kolo
