#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/scope.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

const RegisterOp source_op(OpSchema("GraphTestSource")
                               .attr("dtype", DType::f32)
                               .attr("shape", Shape())
                               .output("y", "dtype")
                               .shape([](ShapeContext& c) { c.set_output(0, c.attr<Shape>("shape")); }));
const RegisterOp variable_op(OpSchema("GraphTestVariable").output("ref", DType::f32).variable_storage());
const RegisterOp update_op(OpSchema("GraphTestUpdate")
                               .input("ref", {DType::f32})
                               .updates()
                               .input("value", "ref")
                               .output("out", "ref"));
const RegisterOp pair_op(OpSchema("GraphTestPair")
                             .input("a", {DType::f32, DType::i32})
                             .input("b", "a")
                             .required_attr("axis", 0)
                             .attr("alpha", 0.5)
                             .output("sum")
                             .output("count", DType::i64)
                             .shape([](ShapeContext& c) {
                               c.set_output(0, broadcast_shapes(c.input(0), c.input(1)));
                               c.set_output(1, Shape());
                             }));
const RegisterOp list_op(
    OpSchema("GraphTestList").variadic("inputs", {DType::f32, DType::i32}).output_per_input());

const RegisterOp parts_op(
    OpSchema("GraphTestParts").input("x").required_attr("count", 0).output("parts", "count"));

struct GraphTest : ::testing::Test {
  Output source(DType dtype = DType::f32, Shape shape = {}, const std::string& name = "source") {
    return s.add("GraphTestSource", {}, {{"dtype", dtype}, {"shape", std::move(shape)}}, name);
  }
  const Node& pair(Output a, Output b, AttrMap attrs = {{"axis", 1}}) {
    return *s.add("GraphTestPair", {a, b}, std::move(attrs), "pair").node;
  }

  Graph graph;
  Scope s{graph};
};

using GraphNames = GraphTest;
using GraphChecks = GraphTest;
using GraphInference = GraphTest;
using GraphLookup = GraphTest;

TEST_F(GraphNames, AreTheOpsUnlessWishedFor) {
  EXPECT_EQ(s.add("GraphTestSource", {}).name(), "GraphTestSource");
}

TEST_F(GraphNames, GetASuffixWhereTheyAreTaken) {
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) names.push_back(source(DType::f32, {}, "x").node->name());
  EXPECT_THAT(names, ElementsAre("x", "x_1", "x_2"));
}

TEST_F(GraphNames, SkipSuffixesThatAreTaken) {
  std::vector<std::string> names;
  for (const char* wished : {"x_1", "x", "x", "x_1"})
    names.push_back(source(DType::f32, {}, wished).node->name());
  EXPECT_THAT(names, ElementsAre("x_1", "x", "x_2", "x_1_1"));
}

TEST_F(GraphNames, AreComparedWithoutCaseAndKeptAsWritten) {
  std::vector<std::string> names;
  for (const char* wished : {"Relu", "relu", "RELU"})
    names.push_back(source(DType::f32, {}, wished).node->name());
  EXPECT_THAT(names, ElementsAre("Relu", "relu_1", "RELU_2"));
}

TEST_F(GraphNames, MayHoldDotsDashesAndSlashes) {
  EXPECT_EQ(source(DType::f32, {}, ".a/B-1_c.d/").node->name(), ".a/B-1_c.d/");
}

TEST_F(GraphNames, AreRefusedWhereTensorFlowRefusesThem) {
  for (const char* name : {"_x", "-x", "/x", "x y", "x:0", "^x", "x\\y", "\xc3\xa9"}) {
    EXPECT_THAT([&] { source(DType::f32, {}, name); },
                ThrowsMessage<InvalidArgumentError>(
                    HasSubstr(std::string("'") + name + "' is not a valid node name")));
    EXPECT_THROW(graph.unique_name(name), InvalidArgumentError);
  }
  EXPECT_THROW(graph.unique_name(""), InvalidArgumentError);
  EXPECT_EQ(graph.num_nodes(), 0);
}

TEST_F(GraphNames, ReservedByUniqueNameAreTaken) {
  EXPECT_EQ(graph.unique_name("x"), "x");
  EXPECT_EQ(source(DType::f32, {}, "x").node->name(), "x_1");
}

TEST_F(GraphChecks, NameTheNearestOpOfOneThatIsNotThere) {
  EXPECT_THAT([&] { s.add("GraphTestPairs", {}); },
              ThrowsMessage<NotFoundError>(HasSubstr("did you mean \"GraphTestPair\"?")));
}

TEST_F(GraphChecks, RefuseAWrongNumberOfInputs) {
  const Output x = source();
  EXPECT_THAT(
      [&] {
        s.add("GraphTestPair", {x}, {{"axis", 0}}, "p");
      },
      ThrowsMessage<InvalidArgumentError>(
          AllOf(HasSubstr("GraphTestPair node \"p\""), HasSubstr("1 inputs were given; the op takes 2"))));
  EXPECT_THROW(s.add("GraphTestPair", {x, x, x}, {{"axis", 0}}), InvalidArgumentError);
}

TEST_F(GraphChecks, RefuseAnEmptyInput) {
  EXPECT_THAT([&] { pair(source(), Output()); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("input \"b\" is empty")));
}

TEST_F(GraphChecks, RefuseAnInputOfAnotherGraph) {
  Graph other;
  const Output stranger = Scope(other).add("GraphTestSource", {}, {}, "stranger");
  EXPECT_THAT(
      [&] { pair(stranger, stranger); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Tensor stranger:0 is not an element of this graph.")));
}

TEST_F(GraphChecks, RefuseATypeThatTheOpDoesNotTake) {
  const Output x = source(DType::f64);
  EXPECT_THAT([&] { pair(x, x); }, ThrowsMessage<InvalidArgumentError>(
                                       HasSubstr("input \"a\" (source:0) is f64; allowed: f32, i32")));
}

TEST_F(GraphChecks, RefuseTwoTypesWhereTheOpWantsOne) {
  const Output real = source(DType::f32, {}, "real"), whole = source(DType::i32, {}, "whole");
  EXPECT_THAT([&] { pair(real, whole); }, ThrowsMessage<InvalidArgumentError>(AllOf(
                                              HasSubstr("(whole:0) is i32"), HasSubstr("(real:0) is f32"))));
  EXPECT_THROW(s.add("GraphTestList", {real, whole}), InvalidArgumentError);
}

TEST_F(GraphChecks, RefuseToUpdateWhatIsNoVariable) {
  const Output x = source();
  EXPECT_THAT(
      [&] {
        s.add("GraphTestUpdate", {x, x});
      },
      ThrowsMessage<InvalidArgumentError>(
          AllOf(HasSubstr("input \"ref\" must be a variable"), HasSubstr("GraphTestSource"))));
  const Output variable = s.add("GraphTestVariable", {});
  EXPECT_NO_THROW(s.add("GraphTestUpdate", {variable, x}));
}

TEST_F(GraphChecks, RefuseUnknownMissingAndMistypedAttributes) {
  const Output x = source();
  EXPECT_THAT(
      [&] {
        pair(x, x, {{"axis", 0}, {"alfa", 0.5}});
      },
      ThrowsMessage<InvalidArgumentError>(
          AllOf(HasSubstr("there is no attribute \"alfa\""), HasSubstr("did you mean \"alpha\"?"))));
  EXPECT_THAT([&] { pair(x, x, {}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("attribute \"axis\" is missing")));
  EXPECT_THAT(
      [&] {
        pair(x, x, {{"axis", "0"}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("attribute \"axis\" is a int, not a string")));
}

TEST_F(GraphChecks, AddTheNodeToWhatItsShapeFunctionSays) {
  const Output a = source(DType::f32, {2, 3}), b = source(DType::f32, {4});
  EXPECT_THAT([&] { pair(a, b); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("GraphTestPair node \"pair\""),
                                                        HasSubstr("Incompatible shapes: [2,3] vs. [4]"))));
}

TEST_F(GraphChecks, RefuseAControlInputOfAnotherGraph) {
  Graph other;
  const Operation stranger = Scope(other).add("GraphTestSource", {}, {}, "stranger");
  EXPECT_THAT(
      [&] { s.control_dependencies({stranger}).add("GraphTestSource", {}); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("control input \"stranger\" is of another graph")));
}

TEST_F(GraphChecks, ThatFailLeaveNoTrace) {
  const Output a = source(DType::f32, {2, 3}, "a"), b = source(DType::f32, {4}, "b");
  EXPECT_THROW(pair(a, b), InvalidArgumentError);
  EXPECT_THROW(pair(a, Output()), InvalidArgumentError);
  EXPECT_THROW(pair(a, a, {}), InvalidArgumentError);
  const Scope failing = s.device([](const Node&) -> std::string { throw UnavailableError("no device"); });
  EXPECT_THROW(failing.add("GraphTestPair", {a, a}, {{"axis", 0}}, "pair"), UnavailableError);
  EXPECT_EQ(graph.num_nodes(), 2);
  EXPECT_EQ(graph.find_node("pair"), nullptr);
  EXPECT_EQ(pair(a, a).name(), "pair") << "a failed call kept its name";
}

TEST_F(GraphInference, FillsInDefaultAttributesTypesAndShapes) {
  const Output a = source(DType::i32, {2, 1}), b = source(DType::i32, {-1, 3});
  const Node& node = pair(a, b);
  EXPECT_EQ(node.attr<int>("axis"), 1);
  EXPECT_EQ(node.attr<float>("alpha"), 0.5f);
  EXPECT_THROW(node.attr("beta"), InternalError);
  ASSERT_EQ(node.num_outputs(), 2);
  EXPECT_EQ(node.output(0).dtype(), DType::i32);
  EXPECT_EQ(node.output(0).shape(), Shape({2, 3}));
  EXPECT_EQ(node.output(1).dtype(), DType::i64);
  EXPECT_EQ(node.output(1).shape(), Shape());
}

TEST_F(GraphInference, GivesAVariadicOpAnOutputForEachInput) {
  const Node& none = *s.add("GraphTestList", {}).node;
  EXPECT_EQ(none.num_outputs(), 0);
  const Node& two = *s.add("GraphTestList", {source(DType::i32, {2}), source(DType::i32, {3})}).node;
  ASSERT_EQ(two.num_outputs(), 2);
  EXPECT_EQ(two.output(1).dtype(), DType::i32);
  EXPECT_EQ(two.output(1).shape(), Shape({3}));
}

TEST_F(GraphInference, GivesAsManyOutputsAsAnAttributeSays) {
  const Node& parts = *s.add("GraphTestParts", {source(DType::i64, {2})}, {{"count", 3}}).node;
  ASSERT_EQ(parts.num_outputs(), 3);
  EXPECT_EQ(parts.output(2).dtype(), DType::i64);
}

TEST_F(GraphInference, NumbersNodesInOrderOfCreation) {
  const Output a = source(), b = source();
  const Node& sum = pair(a, b);
  EXPECT_EQ(a.node->id(), 0);
  EXPECT_EQ(sum.id(), 2);
  EXPECT_EQ(&graph.node(2), &sum);
  EXPECT_EQ(graph.num_nodes(), 3);
}

TEST_F(GraphInference, DropsControlInputsThatAreInputsAlready) {
  const Output a = source(), b = source();
  const Operation node = s.control_dependencies({a, b}).add("GraphTestPair", {a, a}, {{"axis", 0}});
  EXPECT_THAT(node.node->control_inputs(), ElementsAre(b.node));
}

TEST_F(GraphLookup, FindsATensorByItsNameWithOrWithoutIndex) {
  const Node& node = pair(source(), source());
  EXPECT_EQ(graph.find_output("pair:1"), node.output(1));
  EXPECT_EQ(graph.find_output("pair"), node.output(0));
  EXPECT_EQ(node.output(1).name(), "pair:1");
}

TEST_F(GraphLookup, SaysThatAnOperationDoesNotExist) {
  EXPECT_THAT([&] { graph.find_output("a/x:0"); },
              ThrowsMessage<NotFoundError>(HasSubstr(
                  "The name 'a/x:0' refers to a Tensor which does not exist. The operation, 'a/x', does "
                  "not exist in the graph.")));
}

TEST_F(GraphLookup, SaysHowManyOutputsAnOperationHas) {
  pair(source(), source());
  for (const std::string name : {"pair:2", "pair:-1", "pair:9223372036854775807"})
    EXPECT_THAT(
        [&] { graph.find_output(name); },
        ThrowsMessage<NotFoundError>(HasSubstr("The name '" + name +
                                               "' refers to a Tensor which does not exist. The operation, "
                                               "'pair', exists but only has 2 outputs.")));
}

TEST_F(GraphLookup, RefusesANameWhoseIndexIsNoNumber) {
  for (const std::string name : {"source:", "source:x", "source:0x"})
    EXPECT_THAT([&] { graph.find_output(name); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("'" + name + "'")));
}

TEST_F(GraphLookup, OfAnOutputThatANodeLacksNamesTheNode) {
  const Output x = source();
  EXPECT_THAT([&] { x.node->output(1); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("GraphTestSource node \"source\""), HasSubstr("1 outputs"))));
}

TEST(Graph, FinalizedRejectsNodesUntilUnfinalized) {
  Graph graph;
  const Scope s(graph);
  graph.finalize();
  EXPECT_THAT(
      [&] { s.add("GraphTestSource", {}); },
      ThrowsMessage<FailedPreconditionError>(HasSubstr("Graph is finalized and cannot be modified.")));
  EXPECT_EQ(graph.num_nodes(), 0);
  graph.unfinalize();
  EXPECT_EQ(s.add("GraphTestSource", {}).name(), "GraphTestSource");
}

TEST(Graph, KeepsCollectionsInTheOrderOfAdding) {
  Graph graph;
  const Scope s(graph);
  const Operation a = s.add("GraphTestSource", {}), b = s.add("GraphTestSource", {});
  graph.add_to_collection(kLocalVariables, *b.node);
  graph.add_to_collection(kLocalVariables, *a.node);
  EXPECT_THAT(graph.collection(kLocalVariables), ElementsAre(b.node, a.node));
  EXPECT_THAT(graph.collection("nobody's"), IsEmpty());
}

}  // namespace
}  // namespace kolo
