#include <kolo/core/passes/transfer.h>

#include <gmock/gmock.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/passes/memory.h>
#include <kolo/core/passes/pipeline.h>
#include <tests/core/counted_loop.h>
#include <tests/core/passes/step_for.h>
#include <tests/core/test_ops.h>

namespace kolo {
namespace {

using testing::call;
using testing::local;
using testing::local_placer;
using testing::node_named;
using testing::step_for;
using testing::step_that_fetches;

constexpr char kHost[] = "/job:localhost/replica:0/task:0/device:CPU:0";

// As a plan would have it.
StepGraph with_transfers(StepGraph step) {
  Placements placements;
  place(step, local_placer({"CPU:0", "CPU:1", "GPU:0", "GPU:1"}), placements);
  insert_transfers(step, kHost);
  return step;
}

int count(const StepGraph& step, const std::string& op) {
  return static_cast<int>(std::count_if(step.nodes.begin(), step.nodes.end(),
                                        [&](const StepNode& node) { return node.schema->name() == op; }));
}

// Whether one of the two nodes waits for the other, through others perhaps.
bool waits_for(const StepGraph& step, int node, const std::string& before) {
  if (step.nodes[static_cast<std::size_t>(node)].name == before) return true;
  const StepNode& n = step.nodes[static_cast<std::size_t>(node)];
  return std::any_of(n.inputs.begin(), n.inputs.end(),
                     [&](StepValue in) { return waits_for(step, in.node, before); }) ||
         std::any_of(n.control_inputs.begin(), n.control_inputs.end(),
                     [&](int control) { return waits_for(step, control, before); }) ||
         std::any_of(n.after.begin(), n.after.end(),
                     [&](int earlier) { return waits_for(step, earlier, before); });
}

TEST(InsertTransfers, LeavesOneDeviceAlone) {
  Graph graph;
  const Scope s = Scope(graph).device("/cpu:0");
  const StepGraph step = with_transfers(step_that_fetches({call(s, 2, {call(s, 1)})}));
  EXPECT_EQ(step.nodes.size(), 2u);
}

TEST(InsertTransfers, JoinsTwoDevicesByAPair) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s.device("/cpu:0"), 1), b = call(s.device("/gpu:1"), 2, {a});
  const StepGraph step = with_transfers(step_for({b}));
  const StepNode& reader = node_named(step, "call2");
  const StepNode& recv = step.nodes[static_cast<std::size_t>(reader.inputs[0].node)];
  const StepNode& send = step.nodes[static_cast<std::size_t>(recv.inputs[0].node)];
  EXPECT_EQ(recv.schema->name(), "_Recv");
  EXPECT_EQ(local(recv.device), "GPU:1");
  EXPECT_EQ(send.schema->name(), "_Send");
  EXPECT_EQ(local(send.device), "CPU:0");
  EXPECT_EQ(step.nodes[static_cast<std::size_t>(send.inputs[0].node)].name, "call1");
  EXPECT_EQ(recv.attrs.at("tensor_name").get<std::string>(), "call1:0");
  EXPECT_EQ(local(recv.attrs.at("send_device").get<std::string>()), "CPU:0");
  EXPECT_EQ(local(recv.attrs.at("recv_device").get<std::string>()), "GPU:1");
}

TEST(InsertTransfers, SendAValueOnceToEachDevice) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s.device("/cpu:0"), 1);
  const StepGraph step =
      with_transfers(step_for({call(s.device("/gpu:0"), 2, {a}), call(s.device("/gpu:0"), 3, {a}),
                               call(s.device("/gpu:1"), 4, {a})}));
  EXPECT_EQ(count(step, "_Recv"), 2);
}

TEST(InsertTransfers, ShareMemoryBetweenCpus) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s.device("/cpu:0"), 1), b = call(s.device("/cpu:1"), 2, {a});
  const StepGraph step = with_transfers(step_for({b}));
  EXPECT_EQ(count(step, "_HostRecv"), 1);
  EXPECT_EQ(count(step, "_Recv"), 0);
}

TEST(InsertTransfers, BringFetchesToTheHost) {
  Graph graph;
  const Scope s(graph);
  const StepGraph step = with_transfers(step_that_fetches({call(s.device("/gpu:0"), 1)}));
  const StepNode& fetched = step.nodes[static_cast<std::size_t>(step.fetches[0].node)];
  EXPECT_EQ(fetched.schema->name(), "_Recv");
  EXPECT_EQ(local(fetched.device), "CPU:0");
}

// Of a loss, say, behind which the backward pass stands.
TEST(InsertTransfers, BringFetchesToTheHostBehindAllOtherNodes) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output loss = call(s, 1), update = call(s, 2, {loss});
  const StepGraph step = with_transfers(step_that_fetches({loss, update}));
  const StepNode& recv = step.nodes[static_cast<std::size_t>(step.fetches[0].node)];
  for (const StepNode& node : step.nodes)
    EXPECT_TRUE(node.schema->name() == "_Recv" || node.order < recv.order) << node.name;
}

TEST(InsertTransfers, ReadWhatAGpuKeepsOnTheHostWithoutACopy) {
  Graph graph;
  const Scope s(graph);
  const Output n = constant(s.device("/gpu:0"), Tensor::scalar<std::int32_t>(3));
  const StepGraph step = with_transfers(step_for({call(s.device("/cpu:0"), 1, {n})}));
  EXPECT_EQ(count(step, "_HostRecv"), 1);
  EXPECT_EQ(count(step, "_Recv"), 0);
}

TEST(InsertTransfers, BringWhatAGpuKeepsOnTheHostIntoItsMemoryForItsKernels) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output n = constant(s, Tensor::scalar<std::int32_t>(3));
  const StepGraph step = with_transfers(step_for({call(s, 1, {n})}));
  const StepNode& recv = step.nodes[static_cast<std::size_t>(node_named(step, "call1").inputs[0].node)];
  EXPECT_EQ(recv.schema->name(), "_Recv");
  EXPECT_EQ(local(recv.device), "GPU:0");
  EXPECT_EQ(local(recv.attrs.at("send_device").get<std::string>()), "CPU:0");
}

TEST(InsertTransfers, BringWhatDecidesOfABranchToTheHost) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Output pred = less(s, call(s, 1), call(s, 2));
  const Operation guard = s.add("BranchGuard", {pred}, {{"taken", true}}, "guard");
  const StepGraph step = with_transfers(step_for({guard}));
  const StepNode& recv = step.nodes[static_cast<std::size_t>(node_named(step, "guard").inputs[0].node)];
  EXPECT_EQ(recv.schema->name(), "_Recv");
  EXPECT_EQ(local(recv.device), "CPU:0");
  EXPECT_EQ(local(node_named(step, "guard").device), "GPU:0");
}

// As the bucket pass asks for it: a gradient of a GPU, and where it is to lie.
TEST(InsertTransfers, ReceiveAPlacedCopyInItsPlaceAndForNobodyElse) {
  Graph graph;
  const Scope s(graph);
  const Output gradient = call(s.device("/gpu:0"), 1);
  const Output reader = call(s.device("/cpu:0"), 2, {gradient});
  StepGraph step = step_for({reader});
  Placements placements;
  place(step, local_placer({"CPU:0", "GPU:0"}), placements);
  const int producer = node_named(step, "call2").inputs[0].node;
  const int copy = step.add(kCopyOp, "into_bucket", {{producer, 0}}, {}, 1);
  step.nodes[static_cast<std::size_t>(copy)].device = kHost;
  step.placements[{copy, 0}] = {nullptr, 64};
  const int user = step.add("NoOp", "user", {}, {}, 2);
  step.nodes[static_cast<std::size_t>(user)].inputs = {{copy, 0}};
  step.nodes[static_cast<std::size_t>(user)].device = kHost;
  insert_transfers(step, kHost);
  EXPECT_EQ(count(step, "_Recv"), 2) << "the reader's own value must not be overwritten";
  EXPECT_EQ(count(step, kCopyOp), 0);
  const StepValue placed = step.nodes[static_cast<std::size_t>(user)].inputs[0];
  EXPECT_EQ(step.nodes[static_cast<std::size_t>(placed.node)].schema->name(), "_Recv");
  EXPECT_EQ(step.placements.at(placed).offset, 64u);
  EXPECT_NE(placed.node, node_named(step, "call2").inputs[0].node);
}

// Who has sent it ahead put it on the stream of copies to the GPU, and no node waits for that.
TEST(InsertTransfers, ReceiveAPlacedCopyOfWhatWasSentAheadBehindTheGpusOwn) {
  Graph graph;
  const Scope s(graph);
  const Output value = call(s.device("/gpu:0"), 1);
  StepGraph step = step_for({call(s.device("/gpu:0"), 2, {value})}, {{value, Shape{}}});
  Placements placements;
  place(step, local_placer({"CPU:0", "GPU:0"}), placements);
  const int fed = node_named(step, "call2").inputs[0].node;
  ASSERT_EQ(step.nodes[static_cast<std::size_t>(fed)].schema->name(), kFeedOp);
  step.nodes[static_cast<std::size_t>(fed)].device = node_named(step, "call2").device;
  const int copy = step.add(kCopyOp, "into_bucket", {{fed, 0}}, {}, 1);
  step.nodes[static_cast<std::size_t>(copy)].device = kHost;
  step.placements[{copy, 0}] = {nullptr, 64};
  const int user = step.add("NoOp", "user", {}, {}, 2);
  step.nodes[static_cast<std::size_t>(user)].inputs = {{copy, 0}};
  step.nodes[static_cast<std::size_t>(user)].device = kHost;
  insert_transfers(step, kHost);
  EXPECT_EQ(count(step, "_Recv"), 2) << "the GPU's own copy, and the one in its place";
  const int own = node_named(step, "call2").inputs[0].node;
  ASSERT_NE(own, fed);
  const int placed = step.nodes[static_cast<std::size_t>(user)].inputs[0].node;
  EXPECT_TRUE(waits_for(step, placed, step.nodes[static_cast<std::size_t>(own)].name));
}

TEST(InsertTransfers, LeaveWhatIsPlacedInAGpusMemoryToItsKernels) {
  Graph graph;
  const Scope s(graph);
  const Output gradient = call(s.device("/gpu:0"), 1);
  const Output on_gpu = call(s.device("/gpu:0"), 2, {gradient}),
               on_cpu = call(s.device("/cpu:0"), 3, {gradient});
  StepGraph step = step_for({on_gpu, on_cpu});
  Placements placements;
  place(step, local_placer({"CPU:0", "GPU:0"}), placements);
  step.placements[node_named(step, "call2").inputs[0]] = {.buffer = nullptr, .on_host = false};
  insert_transfers(step, kHost);
  const auto maker_of = [&](const char* reader) {
    return step.nodes[static_cast<std::size_t>(node_named(step, reader).inputs[0].node)].schema->name();
  };
  EXPECT_NE(maker_of("call2"), "_Recv");
  EXPECT_EQ(maker_of("call3"), "_Recv");
}

TEST(InsertTransfers, OfAVariableSeeTheUpdatesBeforeTheirReader) {
  Graph graph;
  const Scope s(graph);
  const Scope gpu = s.device("/gpu:0"), cpu = s.device("/cpu:0");
  const Variable v(gpu.named("v"), constant(gpu, 1.0f));
  const Output before = call(cpu, 1, {v.read()});
  const Output update = assign_add(s.named("update"), v, constant(gpu, 2.0f));
  const Output after = call(cpu, 2, {v.read()}), after_too = call(cpu, 3, {v.read()});
  StepGraph step = with_transfers(step_for({before, update, after, after_too}));
  EXPECT_EQ(count(step, "_Recv"), 2) << "one before the update, one for both readers after it";
  order_updates(step);
  const int reader_before = node_named(step, "call1").inputs[0].node,
            reader_after = node_named(step, "call2").inputs[0].node;
  EXPECT_FALSE(waits_for(step, reader_before, "update"));
  EXPECT_TRUE(waits_for(step, reader_after, "update"));
  EXPECT_EQ(topological_order(step).size(), step.nodes.size());
}

TEST(InsertTransfers, OfAVariableSeeWhatALoopBeforeTheirReaderDid) {
  Graph graph;
  const Scope s(graph);
  const Scope gpu = s.device("/gpu:0"), cpu = s.device("/cpu:0");
  const Variable v(gpu.named("v"), constant(gpu, 1.0f));
  const Output before = call(cpu, 1, {v.read()});
  const Output loop = testing::counted_loop(
      s, 2, [&](const Scope& b) -> Operation { return assign_add(b, v, constant(b, 2.0f)); });
  const Output after = call(cpu, 2, {v.read()});
  StepGraph step = with_transfers(step_for({before, loop, after}));
  EXPECT_NE(node_named(step, "call1").inputs[0], node_named(step, "call2").inputs[0]);
}

TEST(PlanMemory, HasAnArenaForEachDevice) {
  Graph graph;
  const Scope s(graph);
  constexpr std::int64_t kElements = 4096;
  constexpr std::size_t kBytes = 4 * kElements;
  const Output a = call(s.device("/cpu:0"), 1, {}, {kElements}),
               b = call(s.device("/gpu:0"), 2, {a}, {2 * kElements});
  StepGraph step = with_transfers(step_for({call(s.device("/gpu:0"), 3, {b}, {kElements})}));
  const MemoryPlan plan =
      plan_memory(step, topological_order(step), std::vector<std::size_t>(step.nodes.size()), kHost);
  ASSERT_EQ(plan.arenas.size(), 2u);
  EXPECT_EQ(local(plan.arenas[0].device), "CPU:0");
  EXPECT_EQ(plan.arenas[0].bytes, kBytes);
  EXPECT_EQ(local(plan.arenas[1].device), "GPU:0");
  EXPECT_EQ(plan.arenas[1].bytes, 3 * kBytes) << "b beside its input, then beside its reader";
  EXPECT_EQ(plan.arena_bytes, 4 * kBytes);
}

}  // namespace
}  // namespace kolo
