// Rows 17 to 30 of the worked examples, and what the placer's rules say beyond them.
#include <kolo/core/passes/placer.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <tests/core/passes/placer_graph.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using testing::devices_of_task;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

const PlacerOptions kSoft = {.allow_soft_placement = true};

struct PlacerTest : ::testing::Test {
  template <typename E = InvalidArgumentError, typename Matcher>
  void expect_failure(const Matcher& matcher, PlacerOptions options = {}) {
    EXPECT_THAT([&] { graph.place(options); }, ThrowsMessage<E>(matcher));
  }
  testing::PlacerGraph graph;
};

using Placing = PlacerTest;
using ReferenceEdges = PlacerTest;
using ColocationGroups = PlacerTest;
using SoftPlacement = PlacerTest;
using Generators = PlacerTest;
using Tasks = PlacerTest;

// Row 17.
TEST_F(Placing, PrefersGpusWhereAnOpRunsOnBoth) {
  graph.add("in", "In");
  graph.add("n1", "Relu", {"in"});
  graph.add("n2", "Relu", {"in"});
  graph.place();
  EXPECT_EQ(graph.device("in"), "CPU:0");
  EXPECT_EQ(graph.device("n1"), "GPU:0");
  EXPECT_EQ(graph.device("n2"), "GPU:0");
}

// Row 18.
TEST_F(ReferenceEdges, KeepAnAssignmentWithACpuVariable) {
  graph.add("in", "In");
  graph.add("var", "VarC");
  graph.add("assign", "Assign", {"var", "in"});
  graph.place();
  for (const char* name : {"in", "var", "assign"}) EXPECT_EQ(graph.device(name), "CPU:0") << name;
}

// Row 19.
TEST_F(Generators, FollowTheirOnlyConsumerToTheCpu) {
  graph.add("var", "VarC");
  graph.add("out", "Out");
  graph.add("assign", "Assign", {"var", "out"});
  EXPECT_THAT(graph.place(), ElementsAre("var", "assign", "out")) << "generators come last";
  EXPECT_EQ(graph.device("out"), "CPU:0");
}

// Row 20.
TEST_F(ReferenceEdges, RefuseTwoOpsThatNoDeviceRuns) {
  graph.add("in", "In");
  graph.add("var", "VarC");
  graph.add("assign", "AssignG", {"var", "in"});
  expect_failure(
      AllOf(HasSubstr("Nodes were connected by a reference connection (requiring them to be on the "
                      "same device), but the two nodes were assigned two different devices: "),
            HasSubstr("Cannot colocate nodes 'var' and 'assign' because no device type supports both "
                      "of those nodes and the other nodes colocated with them."),
            HasSubstr("[[Node: assign = AssignG[](var, in)]]")));
}

TEST_F(ReferenceEdges, AreAnErrorWithSoftPlacementAsWell) {
  graph.add("in", "In");
  graph.add("var", "VarC");
  graph.add("assign", "AssignG", {"var", "in"});
  expect_failure(HasSubstr("no device type supports both of those nodes"), kSoft);
}

// Row 21.
TEST_F(SoftPlacement, BringsACpuOpBackFromTheGpu) {
  graph.add("in", "In", {}, "/device:GPU:0");
  graph.place(kSoft);
  EXPECT_EQ(graph.device("in"), "CPU:0");
}

// Row 22.
TEST_F(SoftPlacement, TakesAnotherDeviceOfTheTypeThatTheOpNeeds) {
  graph.add("dev", "Dev", {}, "/device:GPU:11");
  graph.place(kSoft);
  EXPECT_EQ(graph.device("dev"), "GPU:0");
}

// Row 22.
TEST_F(Placing, NamesADeviceThatIsNotThere) {
  graph.add("dev", "Dev", {}, "/device:GPU:11");
  expect_failure(
      AllOf(HasSubstr("Cannot assign a device to node 'dev': Could not satisfy explicit device "
                      "specification '/device:GPU:11' because no devices matching that specification "
                      "are registered in this process; available devices: "
                      "/job:a/replica:0/task:0/device:CPU:0, /job:a/replica:0/task:0/device:CPU:1, "),
            HasSubstr("[[Node: dev = Dev[_device=\"/device:GPU:11\"]()]]")));
}

// Row 23.
TEST_F(Placing, SaysWhichTypeOfDeviceHasNoKernel) {
  graph.add("var", "VarG", {}, "/device:CPU:0");
  expect_failure(
      HasSubstr("Could not satisfy explicit device specification '/device:CPU:0' because no supported "
                "kernel for CPU devices is available."));
}

// Row 24.
TEST_F(ReferenceEdges, LetTheVariablesSideWin) {
  graph.add("in", "In");
  graph.add("var", "Var", {}, "/device:GPU:0");
  graph.add("assign", "Assign", {"var", "in"}, "/device:CPU:0");
  graph.place();
  EXPECT_EQ(graph.device("var"), "GPU:0");
  EXPECT_EQ(graph.device("assign"), "GPU:0");
}

// Row 25.
TEST_F(ReferenceEdges, LetAConsumerPinAnUnpinnedVariable) {
  graph.add("in", "In");
  graph.add("var", "Var");
  graph.add("assign", "Assign", {"var", "in"}, "/device:CPU:0");
  graph.place();
  EXPECT_EQ(graph.device("var"), "CPU:0");
  EXPECT_EQ(graph.device("assign"), "CPU:0");
}

TEST_F(ReferenceEdges, RefineAPartialRequest) {
  graph.add("in", "In");
  graph.add("var", "Var", {}, "/job:a/device:GPU:*");
  graph.add("assign", "Assign", {"var", "in"}, "/device:GPU:3");
  graph.place();
  EXPECT_EQ(graph.device("var"), "GPU:3");
}

TEST_F(ReferenceEdges, RefuseTwoVariablesPinnedApart) {
  graph.add("a", "Var", {}, "/device:GPU:0");
  graph.add("b", "Var", {}, "/device:GPU:1");
  graph.add("update", "UpdateTwo", {"a", "b"});
  expect_failure(
      AllOf(HasSubstr("were assigned two different devices: Cannot colocate nodes 'b' and 'update'"),
            HasSubstr("Cannot merge devices with incompatible ids: '/device:GPU:1' and "
                      "'/device:GPU:0'")));
}

TEST_F(ReferenceEdges, RefuseTwoVariablesPinnedApartWithSoftPlacementAsWell) {
  graph.add("a", "Var", {}, "/device:GPU:0");
  graph.add("b", "Var", {}, "/device:GPU:1");
  graph.add("update", "UpdateTwo", {"a", "b"});
  expect_failure(HasSubstr("were assigned two different devices: Cannot colocate nodes 'b' and 'update'"),
                 kSoft);
}

TEST_F(ReferenceEdges, LetTheSideOfEachVariableWin) {
  graph.add("a", "Var");
  graph.add("b", "Var", {}, "/device:GPU:1");
  graph.add("update", "UpdateTwo", {"a", "b"}, "/device:CPU:0");
  graph.place();
  for (const char* name : {"a", "b", "update"}) EXPECT_EQ(graph.device(name), "GPU:1") << name;
}

// Row 26.
TEST_F(ColocationGroups, KeepTheirMembersTogetherAndOthersFree) {
  graph.add("in", "In");
  graph.add("together", "Relu", {"in"}, "", {"loc:@in"});
  graph.add("free", "Relu", {"in"});
  graph.place();
  EXPECT_EQ(graph.device("together"), "CPU:0");
  EXPECT_EQ(graph.device("free"), "GPU:0");
}

// Row 27.
TEST_F(ColocationGroups, RefuseOpsThatNoDeviceRunsTogether) {
  graph.add("in", "In");
  graph.add("c", "ReluC", {"in"});
  graph.add("g", "ReluG", {"in"}, "", {"loc:@c"});
  expect_failure(
      HasSubstr("Cannot colocate nodes 'g' and 'c' because no device type supports both of those nodes "
                "and the other nodes colocated with them."));
}

// Row 27.
TEST_F(ColocationGroups, AreGivenUpWhereSoftPlacementAllowsIt) {
  graph.add("in", "In");
  graph.add("c", "ReluC", {"in"});
  graph.add("g", "ReluG", {"in"}, "", {"loc:@c"});
  graph.place(kSoft);
  EXPECT_EQ(graph.device("c"), "CPU:0");
  EXPECT_EQ(graph.device("g"), "GPU:0");
}

TEST_F(ColocationGroups, ListTheirOpsWhereTheyFindNoDevice) {
  graph.add("in", "In", {}, "/device:CPU:12");
  graph.add("relu", "Relu", {"in"}, "", {"loc:@in"});
  expect_failure(
      AllOf(HasSubstr("Colocation Debug Info:"), HasSubstr("\nIn: CPU "), HasSubstr("\nRelu: GPU CPU ")));
}

TEST_F(ColocationGroups, NameAGroupsDeviceThatTheNodeDidNotAskFor) {
  graph.add("in", "In");
  graph.add("a", "Relu", {"in"}, "/job:a");
  graph.add("b", "Relu", {"in"}, "/device:GPU:12", {"loc:@a"});
  expect_failure(
      HasSubstr("Could not satisfy explicit device specification '/job:a' because the node was colocated "
                "with a group of nodes that required incompatible device '/job:a/device:GPU:12'"));
}

TEST_F(ColocationGroups, StayWhereAnEarlierRunPutThem) {
  graph.add("in", "In");
  graph.add("later", "Relu", {"in"}, "", {"loc:@gone"});
  graph.place({}, devices_of_task("/job:a/replica:0/task:0", 10, 10),
              {{"gone", "/job:a/replica:0/task:0/device:GPU:7"}});
  EXPECT_EQ(graph.device("later"), "GPU:7");
}

TEST_F(ColocationGroups, OfTwoRequestsThatClashAreRefused) {
  graph.add("in", "In");
  graph.add("a", "Relu", {"in"}, "/device:GPU:1");
  graph.add("b", "Relu", {"in"}, "/device:CPU:1", {"loc:@a"});
  expect_failure(
      HasSubstr("Cannot colocate nodes 'b' and 'a': Cannot merge devices with incompatible types: "
                "'/device:CPU:1' and '/device:GPU:1'"));
}

// Row 28.
TEST_F(Placing, KeepsANodeWhereAnEarlierRunPutIt) {
  graph.add("in", "In").assigned_device = "/job:a/replica:0/task:0/device:CPU:7";
  EXPECT_THAT(graph.place(), IsEmpty());
  EXPECT_EQ(graph.device("in"), "CPU:7");
}

TEST_F(Placing, RefusesAnAssignedDeviceThatIsNotThere) {
  graph.add("in", "In").assigned_device = "/job:a/replica:0/task:0/device:CPU:17";
  expect_failure<InternalError>(
      HasSubstr("Assigned device '/job:a/replica:0/task:0/device:CPU:17' does not match any device"));
}

TEST_F(Placing, RefusesAnAssignedDeviceWithoutAKernel) {
  graph.add("in", "In").assigned_device = "/job:a/replica:0/task:0/device:GPU:0";
  expect_failure<InternalError>(
      HasSubstr("Assigned device '/job:a/replica:0/task:0/device:GPU:0' does not have registered OpKernel "
                "support for In"));
}

TEST_F(Placing, RefusesAnAssignedDeviceThatIsMalformed) {
  graph.add("in", "In").assigned_device = "/foo:bar";
  expect_failure<InternalError>(HasSubstr("Malformed assigned device '/foo:bar'"));
}

// Row 29.
TEST_F(Placing, RefusesAMalformedRequest) {
  graph.add("in", "In", {}, "/foo:bar");
  expect_failure(HasSubstr("Malformed device specification '/foo:bar'"));
}

// Row 30.
TEST_F(Placing, PutsShapesWithTheirInput) {
  graph.add("var", "VarC");
  graph.add("shape", "Shape", {"var"});
  graph.place();
  EXPECT_EQ(graph.device("shape"), "CPU:0");
}

TEST_F(Placing, LeavesShapesWhereTheyAreAskedFor) {
  graph.add("var", "VarC");
  graph.add("shape", "Shape", {"var"}, "/device:GPU:2");
  graph.place();
  EXPECT_EQ(graph.device("shape"), "GPU:2");
}

TEST_F(Placing, NeedsADevice) {
  graph.add("in", "In");
  EXPECT_THAT([&] { graph.place({}, {}); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("No devices are registered")));
}

TEST_F(Placing, ListsTheKernelsOfAnOpThatHasNoneForTheNode) {
  graph.add("in", "In");
  graph.add("x", "FloatOnGpu", {"in"}).type = DType::i32;
  EXPECT_THAT(
      [&] { graph.place({}, devices_of_task("/job:a/replica:0/task:0", 0, 1)); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("No OpKernel was registered to support Op 'In'")));
  testing::PlacerGraph alone;
  alone.add("x", "FloatOnGpu").type = DType::i32;
  EXPECT_THAT([&] { alone.place({}, devices_of_task("/job:a/replica:0/task:0", 0, 1)); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("No OpKernel was registered to support Op 'FloatOnGpu'"),
                        HasSubstr("Registered devices: [GPU]"), HasSubstr("  device='CPU'\n"),
                        HasSubstr("  device='GPU'; T in [DT_FLOAT]"))));
}

TEST_F(Placing, SaysSoWhereAnOpHasNoKernelAtAll) {
  graph.add("x", "Nowhere");
  expect_failure(AllOf(HasSubstr("No OpKernel was registered to support Op 'Nowhere'"),
                       HasSubstr("Registered devices: [CPU,GPU]"), HasSubstr("  <no registered kernels>")));
}

TEST_F(Placing, HeedsAKernelsPriority) {
  graph.add("in", "In");
  graph.add("x", "PrefersCpu", {"in"});
  graph.place();
  EXPECT_EQ(graph.device("x"), "CPU:0");
}

TEST_F(ColocationGroups, TakeThePrioritiesOfTheOneMemberThatHasSome) {
  graph.add("in", "In");
  graph.add("x", "PrefersCpu", {"in"});
  graph.add("y", "Relu", {"in"}, "", {"loc:@x"});
  graph.place();
  EXPECT_EQ(graph.device("y"), "CPU:0");
}

TEST_F(ColocationGroups, FallBackToTheOrderOfDevicesWherePrioritiesDiffer) {
  graph.add("in", "In");
  graph.add("x", "PrefersCpu", {"in"});
  graph.add("y", "PrefersGpu", {"in"}, "", {"loc:@x"});
  graph.place();
  EXPECT_EQ(graph.device("x"), "GPU:0");
}

TEST_F(Placing, OrdersIndicesAsText) {
  graph.add("in", "In");
  graph.add("x", "Relu", {"in"}, "/device:GPU:*");
  std::vector<PlacerDevice> devices = {PlacerDevice::named("/job:a/replica:0/task:0/device:CPU:0"),
                                       PlacerDevice::named("/job:a/replica:0/task:0/device:GPU:2"),
                                       PlacerDevice::named("/job:a/replica:0/task:0/device:GPU:10")};
  graph.place({}, devices);
  EXPECT_EQ(graph.device("x"), "GPU:10");
}

TEST_F(Generators, GoToTheFirstCandidateWhereConsumersDiffer) {
  graph.add("out", "Out");
  graph.add("c", "ReluC", {"out"});
  graph.add("g", "ReluG", {"out"});
  graph.place();
  EXPECT_EQ(graph.device("out"), "GPU:0");
}

TEST_F(Generators, StayWhereTheyAreAskedFor) {
  graph.add("out", "Out", {}, "/device:GPU:4");
  graph.add("c", "ReluC", {"out"});
  graph.place();
  EXPECT_EQ(graph.device("out"), "GPU:4");
}

TEST_F(SoftPlacement, KeepsTheTaskThatWasAskedFor) {
  auto devices = devices_of_task("/job:a/replica:0/task:0", 1, 1);
  for (auto& device : devices_of_task("/job:a/replica:0/task:1", 1, 0)) devices.push_back(device);
  graph.add("out", "Out", {}, "/task:1/device:GPU:0");
  graph.place(kSoft, devices);
  EXPECT_EQ(graph.device("out"), "/job:a/replica:0/task:1/device:CPU:0");
}

TEST_F(SoftPlacement, NeverMovesWhatAnEarlierRunHasPlaced) {
  graph.add("var", "Var").assigned_device = "/job:a/replica:0/task:0/device:GPU:3";
  graph.add("in", "In");
  graph.add("assign", "Assign", {"var", "in"}, "/device:CPU:0");
  graph.place(kSoft);
  EXPECT_EQ(graph.device("var"), "GPU:3");
  EXPECT_EQ(graph.device("assign"), "GPU:3");
}

std::vector<PlacerDevice> three_tasks() {
  std::vector<PlacerDevice> devices;
  for (const char* task :
       {"/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1", "/job:worker/replica:0/task:0"})
    for (const auto& device : devices_of_task(task, 1, 1)) devices.push_back(device);
  return devices;
}

const PlacerOptions kOnWorker = {.default_device = "/job:worker/replica:0/task:0/device:CPU:0"};

TEST_F(Tasks, ThatNobodyAskedForAreTheSessionsOwn) {
  graph.add("in", "In");
  graph.add("x", "Relu", {"in"});
  graph.place(kOnWorker, three_tasks());
  EXPECT_EQ(graph.device("x"), "/job:worker/replica:0/task:0/device:GPU:0");
}

TEST_F(Tasks, OfAJobAloneAreItsFirst) {
  graph.add("in", "In");
  graph.add("x", "Relu", {"in"}, "/job:ps");
  graph.place(kOnWorker, three_tasks());
  EXPECT_EQ(graph.device("x"), "/job:ps/replica:0/task:0/device:GPU:0");
}

TEST_F(Placing, HeedsTheWishesOfWhatComesLaterAsFarAsTheyFit) {
  graph.add("var", "Var");
  graph.add("update", "AssignC", {"var", "missing"}).constraint_only = true;
  graph.add("impossible", "AssignG", {"var", "missing"}).constraint_only = true;
  EXPECT_THAT(graph.place(), ElementsAre("var"));
  EXPECT_EQ(graph.device("var"), "CPU:0");
}

TEST(NodeSummary, ShowsAttributesDeviceAndInputs) {
  testing::PlacerGraph graph;
  const AttrMap attrs = {{"dtype", DType::f32}, {"value", Tensor::of<float>({2}, {4, 5})}, {"n", 3}};
  graph.add("a", "Out");
  PlacerNode& node = graph.add("b", "Relu", {"a"}, "/device:GPU:2");
  node.attrs = &attrs;
  node.control_inputs = {0};
  EXPECT_EQ(node_summary(graph.nodes, 1),
            "[[Node: b = Relu[dtype=DT_FLOAT, n=3, value=Tensor<type: float shape: [2] values: 4 5>, "
            "_device=\"/device:GPU:2\"](a, ^a)]]");
}

}  // namespace
}  // namespace kolo
