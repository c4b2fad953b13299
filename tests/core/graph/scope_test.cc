#include <gmock/gmock.h>

#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/device/device_name.h>
#include <kolo/core/graph/scope.h>

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

const RegisterOp op(OpSchema("ScopeTestOp").output("y", DType::f32));
const RegisterOp variable_op(OpSchema("ScopeTestVariable").output("ref", DType::f32).variable_storage());

struct ScopeTest : ::testing::Test {
  static std::string device_of(const Scope& scope) {
    return scope.add("ScopeTestOp", {}).node->requested_device();
  }
  static std::string name_of(const Scope& scope, const std::string& name = "") {
    return scope.add("ScopeTestOp", {}, {}, name).name();
  }

  Graph graph;
  Scope s{graph};
};

using NameScope = ScopeTest;
using DeviceScope = ScopeTest;
using ControlDependencies = ScopeTest;
using Colocation = ScopeTest;

TEST_F(NameScope, PrefixesItsNodes) {
  const Scope inner = s.name_scope("outer").name_scope("inner");
  EXPECT_EQ(name_of(inner, "x"), "outer/inner/x");
  EXPECT_EQ(name_of(inner), "outer/inner/ScopeTestOp");
  EXPECT_EQ(name_of(s, "x"), "x");
}

TEST_F(NameScope, EnteredTwiceIsTwoScopes) {
  EXPECT_EQ(name_of(s.name_scope("layer"), "x"), "layer/x");
  EXPECT_EQ(name_of(s.name_scope("layer"), "x"), "layer_1/x");
  EXPECT_EQ(name_of(s, "layer"), "layer_2");
}

TEST_F(NameScope, MayBeginWithAnUnderscoreOnlyWhereItIsNested) {
  EXPECT_EQ(name_of(s.name_scope("a").name_scope("_b"), "x"), "a/_b/x");
  EXPECT_THAT([&] { s.name_scope("_b"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'_b' is not a valid scope name")));
}

TEST_F(NameScope, RefusesWhatNoNodeCouldBeNamed) {
  EXPECT_THROW(s.name_scope("two words"), InvalidArgumentError);
  EXPECT_THROW(s.name_scope("a").name_scope("b:0"), InvalidArgumentError);
  EXPECT_THROW(s.name_scope(""), InvalidArgumentError);
  EXPECT_THROW(s.name_scope("a").name_scope(""), InvalidArgumentError);
}

TEST_F(NameScope, IsLeftAtTheTopWhereDevicesStay) {
  const Scope inner = s.device("/job:ps").name_scope("outer").device("/task:1").name_scope("inner");
  const Scope top = inner.at_top();
  EXPECT_EQ(name_of(top, "x"), "x");
  EXPECT_EQ(top.named("y").add("ScopeTestOp", {}).node->requested_device(), "/job:ps/task:1");
  EXPECT_EQ(name_of(inner, "x"), "outer/inner/x") << "the scope itself is as it was";
}

TEST_F(NameScope, DoesNotPassOnAWishedName) {
  const Scope named = s.named("fc1");
  EXPECT_EQ(name_of(named), "fc1");
  EXPECT_EQ(named.wished_name("dense"), "fc1");
  EXPECT_EQ(named.name_scope("inner").wished_name("dense"), "dense");
}

TEST_F(NameScope, GivesWayToAnExplicitName) { EXPECT_EQ(name_of(s.named("wished"), "explicit"), "explicit"); }

TEST_F(NameScope, PrefixesReservedNames) {
  const Scope inner = s.name_scope("a");
  EXPECT_EQ(inner.unique_name("x"), "a/x");
  EXPECT_EQ(inner.unique_name("x"), "a/x_1");
}

// Rows 10 to 15 of the worked examples, from TensorFlow 1's own tests.
TEST_F(DeviceScope, TakesTheInnermostOfEachField) {
  const Scope gpu = s.device("/device:GPU:0"), worker = gpu.device("/job:worker"),
              cpu = worker.device("/device:CPU:0"), ps = cpu.device("/job:ps");
  EXPECT_EQ(device_of(gpu), "/device:GPU:0");
  EXPECT_EQ(device_of(worker), "/job:worker/device:GPU:0");
  EXPECT_EQ(device_of(cpu), "/job:worker/device:CPU:0");
  EXPECT_EQ(device_of(ps), "/job:ps/device:CPU:0");
  EXPECT_EQ(device_of(s), "") << "an inner scope must leave the outer one as it is";
}

TEST_F(DeviceScope, KeepsTheOuterIndexUnderAStar) {
  EXPECT_EQ(device_of(s.device("/device:GPU:7").device("/device:GPU:*")), "/device:GPU:7");
}

TEST_F(DeviceScope, OfNullptrHidesAllOuterOnes) {
  const Scope none = s.device("/job:worker/replica:2/device:CPU:1").device(nullptr);
  EXPECT_EQ(device_of(none), "");
  EXPECT_EQ(device_of(none.device("/gpu:0")), "/device:GPU:0");
}

TEST_F(DeviceScope, OfAnEmptyFunctionHidesAllOuterOnes) {
  EXPECT_EQ(device_of(s.device("/job:worker").device(DeviceFunction())), "");
}

TEST_F(DeviceScope, OfAnOuterFunctionBeatsAnInnerText) {
  const Scope overwriting = s.device([](const Node&) { return "/job:overwrite"; });
  EXPECT_EQ(device_of(overwriting.device("/job:ps")), "/job:overwrite");
}

TEST_F(DeviceScope, OfAnInnerFunctionIsCompletedByAnOuterText) {
  const Scope inner = s.device("/job:worker/task:1").device([](const Node&) { return "/cpu:0"; });
  EXPECT_EQ(device_of(inner), "/job:worker/task:1/device:CPU:0");
}

TEST_F(DeviceScope, ShowsItsFunctionTheDeviceSoFar) {
  std::string seen = "nothing";
  const Scope outer = s.device([&seen](const Node& node) {
    seen = node.requested_device();
    return node.requested_device();
  });
  EXPECT_EQ(device_of(outer.device("/job:ps/gpu:1")), "/job:ps/device:GPU:1");
  EXPECT_EQ(seen, "/job:ps/device:GPU:1");
}

TEST_F(DeviceScope, ShowsItsFunctionTheNameThatTheNodeWillHave) {
  std::vector<std::string> seen;
  const Scope named = s.device([&](const Node& node) {
    seen.push_back(node.name());
    return std::string();
  });
  for (int i = 0; i < 3; ++i) named.add("ScopeTestOp", {}, {}, "w");
  named.name_scope("inner").add("ScopeTestOp", {}, {}, "w");
  EXPECT_THAT(seen, ElementsAre("w", "w_1", "w_2", "inner/w"));
}

TEST_F(DeviceScope, LeavesNoTraceOfANodeWhoseFunctionThrows) {
  const Scope failing = s.device([](const Node&) -> std::string { throw DataLossError("no device"); });
  const auto fail = [&] { failing.add("ScopeTestOp", {}, {}, "w"); };
  EXPECT_THROW(fail(), DataLossError);
  EXPECT_EQ(name_of(s, "w"), "w");
  EXPECT_THROW(fail(), DataLossError);
  EXPECT_EQ(name_of(s, "w"), "w_1");
  EXPECT_EQ(graph.num_nodes(), 2);
}

TEST_F(DeviceScope, OfTwoComponentsIsRefused) {
  EXPECT_THAT([&] { s.device("/job:muu/device:GPU:2/cpu:0"); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("Cannot specify multiple device types: /job:muu/device:GPU:2/cpu:0")));
}

TEST_F(DeviceScope, OfAFunctionPutsVariablesApart) {
  const Scope by_type =
      s.device([](const Node& node) { return node.schema().is_variable_storage() ? "/cpu:0" : "/gpu:0"; });
  const auto asked = [](const Operation& made) {
    return parse_device_spec(made.node->requested_device())->to_string();
  };
  EXPECT_EQ(asked(by_type.add("ScopeTestVariable", {})), "/device:CPU:0");
  EXPECT_EQ(asked(by_type.add("ScopeTestOp", {})), "/device:GPU:0");
}

TEST_F(DeviceScope, OfAFunctionThatAnswersWithALegacyNameIsCanonical) {
  EXPECT_EQ(device_of(s.device([](const Node&) { return "/job:a/gpu:1"; })), "/job:a/device:GPU:1");
}

TEST_F(DeviceScope, KeepsAMalformedAnswerOfAFunctionForThePlacerToRefuse) {
  EXPECT_EQ(device_of(s.device([](const Node&) { return "/foo:bar"; })), "/foo:bar");
}

TEST_F(DeviceScope, OfNoTextChangesNothing) {
  EXPECT_EQ(device_of(s.device("/gpu:3").device("")), "/device:GPU:3");
}

TEST_F(DeviceScope, OfAnUnknownKeyIsRefused) {
  EXPECT_THAT([&] { s.device("/job:a/rack:3"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Unknown attribute: 'rack' in '/job:a/rack:3'")));
}

TEST_F(DeviceScope, OfAMalformedValueIsRefused) {
  EXPECT_THAT([&] { s.device("/task:one"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Malformed device specification '/task:one'")));
}

TEST_F(DeviceScope, TakesABareTypeAndAnyCaseOfCpuAndGpu) {
  EXPECT_EQ(device_of(s.device("gpu")), "/device:GPU:*");
  EXPECT_EQ(device_of(s.device("/CPU")), "/device:CPU:*");
  EXPECT_EQ(device_of(s.device("/device:gpu:1")), "/device:GPU:1");
  EXPECT_EQ(device_of(s.device("/device:cpu")), "/device:CPU:*");
}

TEST_F(DeviceScope, LeavesOtherTypesThatBeginLikeAKnownOneAlone) {
  EXPECT_EQ(device_of(s.device("/device:cpux:1")), "/device:cpux:1");
}

TEST_F(ControlDependencies, NestToTheUnion) {
  const Operation a = s.add("ScopeTestOp", {}), b = s.add("ScopeTestOp", {});
  const Scope outer = s.control_dependencies({a}), inner = outer.control_dependencies({b, a});
  EXPECT_THAT(inner.add("ScopeTestOp", {}).node->control_inputs(), ElementsAre(a.node, b.node));
  EXPECT_THAT(outer.add("ScopeTestOp", {}).node->control_inputs(), ElementsAre(a.node));
}

TEST_F(ControlDependencies, CanBeLeftBehind) {
  const Operation a = s.add("ScopeTestOp", {});
  const Scope free = s.control_dependencies({a}).without_control_dependencies();
  EXPECT_THAT(free.add("ScopeTestOp", {}).node->control_inputs(), IsEmpty());
}

TEST_F(ControlDependencies, RefuseAnEmptyOperation) {
  EXPECT_THROW(s.control_dependencies({Operation()}), InvalidArgumentError);
}

TEST_F(Colocation, CopiesTheDeviceAndHidesTheDeviceScopes) {
  const Operation first = s.device("/gpu:1").add("ScopeTestOp", {}, {}, "first");
  const Scope beside = s.device("/cpu:0").colocate_with(first);
  const Operation second = beside.add("ScopeTestOp", {});
  EXPECT_EQ(second.node->requested_device(), "/device:GPU:1");
  EXPECT_THAT(second.node->colocation_groups(), ElementsAre("loc:@first"));
}

TEST_F(Colocation, JoinsTheGroupsThatTheOpIsIn) {
  const Operation first = s.add("ScopeTestOp", {}, {}, "first");
  const Operation second = s.colocate_with(first).add("ScopeTestOp", {}, {}, "second");
  EXPECT_THAT(s.colocate_with(second).add("ScopeTestOp", {}).node->colocation_groups(),
              ElementsAre("loc:@first"));
}

TEST_F(Colocation, AccumulatesUnlessToldNotTo) {
  const Operation a = s.add("ScopeTestOp", {}, {}, "a"), b = s.add("ScopeTestOp", {}, {}, "b");
  const Scope outer = s.colocate_with(a);
  EXPECT_THAT(outer.colocate_with(b).colocate_with(a).add("ScopeTestOp", {}).node->colocation_groups(),
              ElementsAre("loc:@a", "loc:@b"));
  EXPECT_THAT(outer.colocate_with(b, true).add("ScopeTestOp", {}).node->colocation_groups(),
              ElementsAre("loc:@b"));
}

TEST_F(Colocation, RefusesAnEmptyOperation) {
  EXPECT_THROW(s.colocate_with(Operation()), InvalidArgumentError);
}

}  // namespace
}  // namespace kolo
