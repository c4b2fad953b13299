#include <kolo/core/passes/place.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <tests/core/counted_loop.h>
#include <tests/core/passes/step_for.h>
#include <tests/core/test_ops.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using testing::call;
using ::testing::HasSubstr;
using testing::local;
using testing::local_placer;
using testing::node_named;
using testing::step_for;
using ::testing::ThrowsMessage;

const std::vector<std::string> kCpu = {"CPU:0"}, kCpuAndGpus = {"CPU:0", "GPU:0", "GPU:1"};
const PlacerOptions kSoft = {.allow_soft_placement = true}, kLogging = {.log_placement = true};

// Row 15 of the worked examples.
TEST(Place, FollowsADeviceFunction) {
  Graph graph;
  const Scope s = Scope(graph).device(
      [](const Node& node) { return node.schema().is_variable_storage() ? "/cpu:0" : "/gpu:0"; });
  const Variable a(s.named("a"), constant(s.named("three"), 3.0f));
  const Output b = constant(s.named("b"), 4.0f);
  const Output c = mul(s.named("c"), a, b);
  StepGraph step = step_for({c});
  Placements placements;
  place(step, local_placer(kCpuAndGpus), placements);
  EXPECT_EQ(local(node_named(step, "a").device), "CPU:0");
  EXPECT_EQ(local(node_named(step, "b").device), "GPU:0");
  EXPECT_EQ(local(node_named(step, "c").device), "GPU:0");
}

TEST(Place, NamesRequestAndDevicesWhenNoneFits) {
  Graph graph;
  const Scope s(graph);
  StepGraph step = step_for({call(s.device("/gpu:3"), 1)});
  Placements placements;
  EXPECT_THAT([&] { place(step, local_placer(kCpu), placements); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("Cannot assign a device to node 'call1': Could not satisfy explicit device "
                                  "specification '/device:GPU:3'"),
                        HasSubstr("because no devices matching that specification are registered in this "
                                  "process; available devices: "
                                  "/job:localhost/replica:0/task:0/device:CPU:0"))));
}

TEST(Place, FallsBackToTheCpuWhereSoftPlacementIsAllowed) {
  Graph graph;
  StepGraph step = step_for({call(Scope(graph).device("/gpu:3"), 1)});
  Placements placements;
  place(step, local_placer(kCpu, kSoft), placements);
  EXPECT_EQ(local(step.nodes[0].device), "CPU:0");
}

TEST(Place, NamesTheOpThatHasNoKernel) {
  Graph graph;
  const Scope s(graph);
  StepGraph step = step_for({s.add("TestUndifferentiable", {call(s, 1)})});
  Placements placements;
  EXPECT_THAT([&] { place(step, local_placer(kCpu), placements); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("No OpKernel was registered to support Op 'TestUndifferentiable'"),
                        HasSubstr("<no registered kernels>"))));
}

TEST(Place, HasNoGpuKernelForWholeNumberVariables) {
  Graph graph;
  const Scope s = Scope(graph).device("/gpu:0");
  const Variable v(s.named("v"), constant(s, Tensor::scalar<std::int32_t>(1)));
  Placements placements;
  StepGraph step = step_for({v.initializer()});
  EXPECT_THAT([&] { place(step, local_placer(kCpuAndGpus), placements); },
              ThrowsMessage<InvalidArgumentError>(AllOf(
                  HasSubstr("Cannot assign a device to node 'v': Could not satisfy explicit device "
                            "specification '/device:GPU:0' because no supported kernel for GPU devices is "
                            "available."),
                  HasSubstr("Colocation Debug Info:"), HasSubstr("Variable: CPU "),
                  HasSubstr("[[Node: v = Variable[container=\"\", dtype=DT_INT32, local=false, shape=[], "
                            "shared_name=\"\", _device=\"/device:GPU:0\"]()]]"))));
  place(step, local_placer(kCpuAndGpus, kSoft), placements);
  EXPECT_EQ(local(node_named(step, "v").device), "CPU:0");
  EXPECT_EQ(local(node_named(step, "v/Assign").device), "CPU:0");
}

TEST(Place, PutsFloatVariablesAndTheirInitialisersOnAGpu) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s.named("zero"), 0.0f));
  StepGraph step = step_for({v.initializer()});
  Placements placements;
  place(step, local_placer(kCpuAndGpus), placements);
  for (const StepNode& node : step.nodes) EXPECT_EQ(local(node.device), "GPU:0") << node.name;
}

TEST(Place, KeepsStringsOnTheCpu) {
  Graph graph;
  const Scope s(graph);
  StepGraph step = step_for({constant(s, Tensor::scalar<std::string>("text"))});
  Placements placements;
  place(step, local_placer(kCpuAndGpus), placements);
  EXPECT_EQ(local(step.nodes[0].device), "CPU:0");
}

TEST(Place, PutsFedValuesOnTheHost) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s.named("x").device("/gpu:1"), DType::f32, {2});
  StepGraph step = step_for({relu(s.named("y"), x)}, {{x, Shape{2}}});
  Placements placements;
  place(step, local_placer(kCpuAndGpus), placements);
  EXPECT_EQ(local(node_named(step, "x").device), "CPU:0");
  EXPECT_EQ(local(node_named(step, "y").device), "GPU:0");
}

// Two outputs; "kept" has readers of its own.
Output two_outputs(const Scope& s, const Output& x) {
  return s.named("b").add("Dropout", {x}, {{"rate", 0.5}});
}

TEST(Place, DoesNotTieAnOpToWhereOneOfItsOutputsIsFed) {
  Graph graph;
  const Scope s(graph);
  const Output b = two_outputs(s.device("/gpu:1"), constant(s, Tensor::of<float>({2}, {1, 2})));
  const Output y = relu(s.named("y"), b);
  for (const Operation& needs_b :
       {Operation(call(s, 1, {Output{b.node, 1}})), Operation(call(s.control_dependencies({b}), 2))}) {
    StepGraph step = step_for({y, needs_b}, {{b, Shape{2}}});
    Placements placements;
    place(step, local_placer(kCpuAndGpus), placements);
    for (const StepNode& node : step.nodes)
      if (node.name == "b") {
        EXPECT_EQ(local(node.device), node.schema->name() == kFeedOp ? "CPU:0" : "GPU:1");
      }
    EXPECT_EQ(local(node_named(step, "y").device), "GPU:0");
  }
}

TEST(Place, PutsWhatIsColocatedWithAFedPlaceholderWhereThatWasAskedFor) {
  Graph graph;
  const Scope s(graph);
  const Output pinned = placeholder(s.device("/gpu:1"), DType::f32, {2});
  const Output free = placeholder(s, DType::f32, {2});
  const Output y = relu(s.named("y").colocate_with(pinned), pinned);
  const Output z = relu(s.named("z").colocate_with(free), free);
  for (const PlacerOptions& options : {PlacerOptions(), kSoft}) {
    StepGraph step = step_for({y, z}, {{pinned, Shape{2}}, {free, Shape{2}}});
    Placements placements;
    place(step, local_placer(kCpuAndGpus, options), placements);
    EXPECT_EQ(local(node_named(step, "y").device), "GPU:1");
    EXPECT_EQ(local(node_named(step, "z").device), "GPU:0");
  }
}

TEST(Place, HeedsAGroupsOpWhoseValueIsFedAndThatALaterStepRuns) {
  Graph graph;
  const Scope s(graph);
  const Variable counter(s.named("counter"), constant(s, Tensor::scalar<std::int32_t>(1)));
  const Output count = assign_add(s, counter, constant(s, Tensor::scalar<std::int32_t>(1)));  // no GPU has it
  const Output beside = call(s.colocate_with(count), 1, {count});
  Placements placements;
  StepGraph first = step_for({beside}, {{count, Shape{}}});
  place(first, local_placer(kCpuAndGpus), placements);
  EXPECT_EQ(local(node_named(first, "call1").device), "CPU:0");
  StepGraph second = step_for({beside});
  place(second, local_placer(kCpuAndGpus), placements);
  EXPECT_EQ(local(node_named(second, "AssignAdd").device), "CPU:0");
}

TEST(Place, DoesNotHeedAnOpWhoseValueIsFedWhereNoDeviceWouldBeLeft) {
  Graph graph;
  const Scope s(graph);
  const Output one = constant(s, Tensor::scalar<std::int32_t>(1));
  const Variable counter(s.named("counter").device("/gpu:0"), one);
  const Output beside = call(s.colocate_with(counter.ref()), 1);
  const Output count = assign_add(s, counter, one);  // of the same group
  StepGraph step = step_for({beside, call(s, 2, {count})}, {{count, Shape{}}});
  Placements placements;
  place(step, local_placer(kCpuAndGpus), placements);
  EXPECT_EQ(local(node_named(step, "call1").device), "GPU:0");
}

TEST(Place, PutsALoopOnTheHostWhateverItsOpsAskFor) {
  Graph graph;
  const Scope s(graph);
  const Output neighbour = call(s.device("/gpu:1"), 1);
  const auto loop_in = [](const Scope& scope) {
    return testing::counted_loop(scope, 2, [](const Scope& b) -> Operation { return call(b, 2); });
  };
  for (const Scope& scope :
       {s.device("/gpu:1"), s.device([](const Node&) { return "/gpu:1"; }), s.colocate_with(neighbour)}) {
    const Output loop = loop_in(scope);
    const Output beside = call(Scope(graph).colocate_with(loop), 3, {loop});
    StepGraph step = step_for({neighbour, beside});
    Placements placements;
    place(step, local_placer(kCpuAndGpus), placements);
    EXPECT_EQ(local(node_named(step, loop.node->name()).device), "CPU:0");
    EXPECT_EQ(local(node_named(step, beside.node->name()).device), "GPU:1");
  }
}

TEST(Place, KeepsALoopOnTheTaskThatWasAskedFor) {
  Graph graph;
  const Output loop = testing::counted_loop(Scope(graph).device("/job:nowhere/gpu:1"), 2,
                                            [](const Scope& b) { return Operation(call(b, 1)); });
  StepGraph step = step_for({loop});
  Placements placements;
  EXPECT_THAT([&] { place(step, local_placer(kCpuAndGpus), placements); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Could not satisfy explicit device specification '/job:nowhere'")));
}

TEST(Place, KeepsWhatAnEarlierStepHasPlaced) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1), b = call(s.device("/gpu:1"), 2, {a});
  Placements placements;
  StepGraph first = step_for({a});
  place(first, local_placer(kCpuAndGpus), placements);
  EXPECT_EQ(local(node_named(first, "call1").device), "GPU:0");
  StepGraph second = step_for({b});
  place(second, local_placer(kCpuAndGpus), placements);
  EXPECT_EQ(local(node_named(second, "call1").device), "GPU:0") << "its only consumer came later";
  EXPECT_EQ(local(node_named(second, "call2").device), "GPU:1");
}

TEST(Place, HeedsUpdatesOfAVariableThatLaterStepsRun) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v"), constant(s, 0.0f));
  s.device("/gpu:1").add("AssignAdd", {v.ref(), constant(s, 1.0f)});
  StepGraph step = step_for({v.initializer()});
  Placements placements;
  place(step, local_placer(kCpuAndGpus), placements);
  EXPECT_EQ(local(node_named(step, "v").device), "GPU:1");
}

TEST(Place, JoinsAGroupWhoseFirstMemberIsNotPartOfTheStep) {
  Graph graph;
  const Scope s(graph);
  const Output first = call(s.device("/gpu:1"), 1);
  const Output second = call(s.colocate_with(first).device(nullptr), 2);
  Placements placements;
  StepGraph one = step_for({first});
  place(one, local_placer(kCpuAndGpus), placements);
  StepGraph two = step_for({second});
  place(two, local_placer(kCpuAndGpus), placements);
  EXPECT_EQ(local(two.nodes[0].device), "GPU:1");
}

TEST(Place, LogsEachNodeOnTheStepThatFirstNeedsIt) {
  Graph graph;
  const Scope s(graph);
  const Output a = call(s, 1), b = call(s.device("/cpu:0"), 2, {a});
  Placements placements;
  const auto printed = [&](const Output& fetch) {
    StepGraph step = step_for({fetch});
    ::testing::internal::CaptureStdout();
    place(step, local_placer(kCpuAndGpus, kLogging), placements);
    return ::testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(printed(a), "call1: (TestCall): /job:localhost/replica:0/task:0/device:GPU:0\n");
  EXPECT_EQ(printed(b), "call2: (TestCall): /job:localhost/replica:0/task:0/device:CPU:0\n");
  EXPECT_EQ(printed(b), "");
}

TEST(Place, SaysWhichRequestItDoesNotHeed) {
  Graph graph;
  const Scope s(graph);
  const Variable v(s.named("v").device("/gpu:0"), constant(s, 0.0f));
  const Operation update = s.named("add").device("/cpu:0").add("AssignAdd", {v.ref(), constant(s, 1.0f)});
  StepGraph step = step_for({update});
  Placements placements;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  place(step, local_placer(kCpuAndGpus, kLogging), placements);
  ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      HasSubstr("Ignoring device specification /device:CPU:0 for node 'add' because the input edge from "
                "'v' is a reference connection and already has a device field set to /device:GPU:0"));
  EXPECT_EQ(local(node_named(step, "add").device), "GPU:0");
}

TEST(KernelTable, LeavesGpusOutWhereTheyBringTheirOwnKernels) {
  const auto real = registered_kernel_table(false)(find_op("TestAdd"));
  ASSERT_EQ(real.size(), 1u);
  EXPECT_EQ(real[0].device_type, "CPU");
  const auto virtual_gpus = registered_kernel_table(true)(find_op("TestAdd"));
  ASSERT_EQ(virtual_gpus.size(), 2u);
  EXPECT_EQ(virtual_gpus[1].device_type, "GPU");
}

}  // namespace
}  // namespace kolo
