#include <kolo/core/graph/graph_def.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

const RegisterOp every_kind_op(OpSchema("GraphDefTestKinds")
                                   .required_attr("flag", false)
                                   .required_attr("count", 0)
                                   .required_attr("real", 0.0)
                                   .required_attr("text", "")
                                   .required_attr("type", DType::f32)
                                   .required_attr("shape", Shape())
                                   .required_attr("tensor", Tensor::scalar(0.0f))
                                   .required_attr("ints", std::vector<std::int64_t>{})
                                   .required_attr("texts", std::vector<std::string>{}));
const RegisterOp two_outputs_op(
    OpSchema("GraphDefTestTwo").output("a", DType::f32).output("b", DType::f32).shape([](ShapeContext& c) {
      c.set_output(0, {});
      c.set_output(1, {2});
    }));

NodeDef node(std::string name, std::string op, std::vector<std::string> inputs = {}, AttrMap attrs = {}) {
  return {.name = std::move(name),
          .op = std::move(op),
          .inputs = std::move(inputs),
          .device = "",
          .colocation_groups = {},
          .attrs = std::move(attrs),
          .output_shapes = {}};
}
NodeDef number(std::string name, float value) {
  return node(std::move(name), "Const", {}, {{"value", Tensor::scalar(value)}, {"dtype", DType::f32}});
}
GraphDef graph_of(std::vector<NodeDef> nodes) {
  GraphDef definition;
  definition.nodes = std::move(nodes);
  return definition;
}

std::vector<std::string> names_of(const Graph& graph) {
  std::vector<std::string> names;
  for (int id = 0; id < graph.num_nodes(); ++id) names.push_back(graph.node(id).name());
  return names;
}

struct GraphDefTest : ::testing::Test {
  // A graph that is refused must leave no trace.
  template <typename ExpectedError, typename Matcher>
  void expect_refused(const GraphDef& definition, const Matcher& text, const ImportOptions& options = {}) {
    const int before = graph.num_nodes();
    EXPECT_THAT([&] { import_graph_def(s, definition, options); }, ThrowsMessage<ExpectedError>(text));
    EXPECT_EQ(graph.num_nodes(), before);
  }

  Graph graph;
  Scope s{graph};
};
using ToGraphDef = GraphDefTest;
using ImportGraphDef = GraphDefTest;
using RefusedGraphDef = GraphDefTest;

TEST_F(ToGraphDef, NamesInputsByTensorAndControlInputsByNode) {
  const Operation two = s.named("two").add("GraphDefTestTwo", {});
  const Operation done = group(s.named("done"), {});
  add(s.control_dependencies({done}).named("sum"), two.output(0), two.output(1));
  EXPECT_THAT(to_graph_def(graph).nodes.back().inputs, ElementsAre("two", "two:1", "^done"));
}

TEST_F(ToGraphDef, KeepsDeviceAndColocation) {
  const Output a = zeros(s.device("/job:ps/cpu:1").named("a"), DType::f32, {});
  zeros(s.colocate_with(a), DType::f32, {});
  const GraphDef definition = to_graph_def(graph);
  EXPECT_EQ(definition.nodes[0].device, "/job:ps/device:CPU:1");
  EXPECT_THAT(definition.nodes[1].colocation_groups, ElementsAre("loc:@a"));
}

TEST_F(ToGraphDef, WritesOutputShapesWhenAsked) {
  s.add("GraphDefTestTwo", {});
  EXPECT_THAT(to_graph_def(graph).nodes[0].output_shapes, IsEmpty());
  EXPECT_THAT(to_graph_def(graph, {.output_shapes = true}).nodes[0].output_shapes,
              ElementsAre(Shape(), Shape({2})));
}

TEST_F(ToGraphDef, GivesBackWhatWasImported) {
  s.add("GraphDefTestKinds", {},
        {{"flag", true},
         {"count", -3},
         {"real", 0.1},
         {"text", std::string("a\0b", 3)},
         {"type", DType::bf16},
         {"shape", Shape({2, -1})},
         {"tensor", Tensor::of<std::int64_t>({2}, {1, 2})},
         {"ints", std::vector<std::int64_t>{4, 5}},
         {"texts", std::vector<std::string>{"x", ""}}});
  const Variable v(s.device("/gpu:1").named("v"), constant(s, 2.0f));
  assign_add(s.control_dependencies({v.initializer()}), v, constant(s, 1.0f));
  get_or_create_global_step(s);
  graph.set_seed(7);
  const GraphDef definition = to_graph_def(graph, {.output_shapes = true});
  Graph copy;
  import_graph_def(Scope(copy), definition);
  EXPECT_EQ(to_graph_def(copy, {.output_shapes = true}), definition);
}

TEST_F(ImportGraphDef, RunsAsTheOriginalDid) {
  const Output x = placeholder(s.named("x"), DType::f32, {-1});
  add(s.named("y"), square(s, x), constant(s, 1.0f));
  Graph copy;
  import_graph_def(Scope(copy), to_graph_def(graph));
  Session session(copy);
  const Tensor y =
      session.run(copy.find_output("y"), {{copy.find_output("x"), Tensor::of<float>({2}, {2, 3})}});
  EXPECT_THAT(y.span<float>(), ElementsAre(5, 10));
}

TEST_F(ImportGraphDef, PutsNodesUnderAPrefixMadeUnique) {
  const GraphDef definition = graph_of({number("a", 1), node("b", "Neg", {"a"})});
  EXPECT_EQ(import_graph_def(s, definition, {.prefix = "copy"}), "copy/");
  EXPECT_EQ(import_graph_def(s.name_scope("outer"), definition, {.prefix = "copy"}), "outer/copy/");
  EXPECT_EQ(import_graph_def(s, definition, {.prefix = "copy"}), "copy_1/");
  EXPECT_THAT(names_of(graph),
              ElementsAre("copy/a", "copy/b", "outer/copy/a", "outer/copy/b", "copy_1/a", "copy_1/b"));
}

TEST_F(ImportGraphDef, PrefixesColocationGroupsAndCollections) {
  NodeDef b = node("b", "Neg", {"a"});
  b.colocation_groups = {"loc:@a"};
  GraphDef definition = graph_of({number("a", 1), b});
  definition.collections["mine"] = {"b"};
  import_graph_def(s, definition, {.prefix = "copy"});
  EXPECT_THAT(graph.find_node("copy/b")->colocation_groups(), ElementsAre("loc:@copy/a"));
  EXPECT_THAT(graph.collection("mine"), ElementsAre(graph.find_node("copy/b")));
}

TEST_F(ImportGraphDef, PrefixesTheTensorsThatALoopNames) {
  Graph other;
  const Scope o(other);
  const Outputs end = while_loop(
      o, [](const Scope& at, const Outputs& v) { return less(at, v[0], constant(at, 5.0f)); },
      [](const Scope& at, const Outputs& v) { return Outputs{add(at, v[0], constant(at, 2.0f))}; },
      {constant(o, 0.0f)});
  import_graph_def(s, to_graph_def(other), {.prefix = "in"});
  Session session(graph);
  EXPECT_EQ(session.run(graph.find_output("in/" + end[0].name())).value<float>(), 6);
}

TEST_F(ImportGraphDef, MapsTheTensorsThatALoopNamesToo) {
  Graph other;
  const Scope o(other);
  const Output step = constant(o.named("step"), 2.0f);
  const Outputs end = while_loop(
      o, [](const Scope& at, const Outputs& v) { return less(at, v[0], constant(at, 5.0f)); },
      [&](const Scope& at, const Outputs& v) { return Outputs{add(at, v[0], step)}; }, {constant(o, 0.0f)});
  const Output mine = constant(s.named("mine"), 3.5f);
  import_graph_def(s, to_graph_def(other), {.prefix = "in", .input_map = {{"step", mine}}});
  Session session(graph);
  EXPECT_EQ(session.run(graph.find_output("in/" + end[0].name())).value<float>(), 7);
}

TEST_F(ImportGraphDef, ReadsMappedTensorsOfTheGraphInstead) {
  const Output mine = constant(s.named("mine"), 5.0f);
  const GraphDef definition =
      graph_of({number("x", 1), node("two", "GraphDefTestTwo"), node("sum", "Add", {"x", "two:1"})});
  import_graph_def(s, definition, {.prefix = "in", .input_map = {{"x", mine}, {"two:1", mine}}});
  EXPECT_THAT(graph.find_node("in/sum")->inputs(), ElementsAre(mine, mine));
}

TEST_F(ImportGraphDef, MapsAVariableSoThatUpdatesReachIt) {
  const Variable mine(s.named("mine"), constant(s, 1.0f));
  Graph other;
  const Variable theirs(Scope(other).named("v"), constant(Scope(other), 0.0f));
  assign_add(Scope(other).named("step"), theirs, constant(Scope(other), 2.0f));
  import_graph_def(s, to_graph_def(other), {.prefix = "in", .input_map = {{"v", mine.ref()}}});
  Session session(graph);
  session.run(mine.initializer());
  session.run(Operation(graph.find_node("in/step")));
  EXPECT_EQ(session.run(mine.read()).value<float>(), 3);
}

TEST_F(ImportGraphDef, AppliesTheScopesDeviceAndControlDependencies) {
  const Operation first = no_op(s.named("first"));
  NodeDef b = number("b", 1);
  b.device = "/job:ps";
  import_graph_def(s.device("/gpu:1").control_dependencies({first}), graph_of({b}));
  EXPECT_EQ(graph.find_node("b")->requested_device(), "/job:ps/device:GPU:1");
  EXPECT_THAT(graph.find_node("b")->control_inputs(), ElementsAre(first.node));
}

TEST_F(ImportGraphDef, SortsNodesThatComeBeforeTheirInputsAndKeepsTheOrderOfTheRest) {
  import_graph_def(s, graph_of({number("z", 1), node("y", "Neg", {"x"}), number("b", 1), number("x", 1)}));
  EXPECT_THAT(names_of(graph), ElementsAre("z", "b", "x", "y"));
}

TEST_F(ImportGraphDef, TakesTheNamesOfScopesToo) {
  import_graph_def(s, graph_of({number("fc/w/initial", 1)}));
  EXPECT_EQ(zeros(s.name_scope("fc"), DType::f32, {}).node->name(), "fc_1/zeros");
}

TEST_F(ImportGraphDef, TakesTheSeedWhereTheGraphHasNone) {
  GraphDef definition = graph_of({});
  definition.seed = 3;
  import_graph_def(s, definition);
  EXPECT_EQ(graph.seed(), 3);
  definition.seed = 4;
  import_graph_def(s, definition);
  EXPECT_EQ(graph.seed(), 3);
}

TEST_F(RefusedGraphDef, NamesAnUnknownOpAndItsNode) {
  expect_refused<NotFoundError>(graph_of({number("a", 1), node("b", "MatMull", {"a", "a"})}),
                                AllOf(HasSubstr("\"b\""), HasSubstr("did you mean \"MatMul\"?")));
}

TEST_F(RefusedGraphDef, NamesAMissingInput) {
  expect_refused<InvalidArgumentError>(graph_of({node("b", "Neg", {"a"})}),
                                       AllOf(HasSubstr("\"b\""), HasSubstr("'a'")));
}

TEST_F(RefusedGraphDef, NamesAnOutputThatIsNotThere) {
  for (const char* input : {"a:1", "a:-1", "a:x", "a:99999999999999999999", "a:"})
    expect_refused<InvalidArgumentError>(graph_of({number("a", 1), node("b", "Neg", {input})}),
                                         AllOf(HasSubstr("\"b\""), HasSubstr(input)));
}

TEST_F(RefusedGraphDef, FindsCycles) {
  expect_refused<InvalidArgumentError>(
      graph_of({number("a", 1), node("b", "Add", {"a", "d"}), node("c", "Neg", {"b"}),
                node("d", "Neg", {"c"}), node("e", "Neg", {"d"})}),
      HasSubstr("cycle"));
  expect_refused<InvalidArgumentError>(graph_of({node("a", "NoOp", {"^a"})}), HasSubstr("\"a\""));
}

TEST_F(RefusedGraphDef, FindsNamesThatAreThereTwice) {
  expect_refused<InvalidArgumentError>(graph_of({number("a", 1), number("A", 1)}), HasSubstr("\"A\""));
}

TEST_F(RefusedGraphDef, FindsNamesThatTheGraphHas) {
  constant(s.named("a"), 1.0f);
  expect_refused<AlreadyExistsError>(graph_of({number("b", 1), number("a", 1)}),
                                     HasSubstr("Node name 'a' already exists in the Graph"));
}

TEST_F(RefusedGraphDef, FindsNamesThatAreNone) {
  expect_refused<InvalidArgumentError>(graph_of({number("a b", 1)}),
                                       HasSubstr("'a b' is not a valid node name"));
  expect_refused<InvalidArgumentError>(graph_of({number("", 1)}), HasSubstr("'' is not a valid node name"));
}

TEST_F(RefusedGraphDef, ChecksAttributesTypesAndShapesAsABuilderDoes) {
  expect_refused<InvalidArgumentError>(graph_of({node("a", "NoOp", {}, {{"axis", 1}})}), HasSubstr("axis"));
  expect_refused<InvalidArgumentError>(graph_of({node("a", "Placeholder")}), HasSubstr("dtype"));
  expect_refused<InvalidArgumentError>(
      graph_of({node("a", "Const", {}, {{"value", Tensor::scalar(1.0f)}, {"dtype", DType::i64}})}),
      HasSubstr("i64"));
  const NodeDef two = node("two", "GraphDefTestTwo");
  expect_refused<InvalidArgumentError>(graph_of({two, node("p", "MatMul", {"two:1", "two"})}),
                                       HasSubstr("\"p\""));
}

TEST_F(RefusedGraphDef, ComparesOutputShapesThatAreWrittenDown) {
  NodeDef a = number("a", 1);
  a.output_shapes = {Shape({3})};
  expect_refused<InvalidArgumentError>(graph_of({a}), AllOf(HasSubstr("\"a\""), HasSubstr("[3]")));
}

TEST_F(RefusedGraphDef, WantsControlInputsLast) {
  expect_refused<InvalidArgumentError>(graph_of({number("a", 1), node("b", "Neg", {"^a", "a"})}),
                                       HasSubstr("control inputs come last"));
}

TEST_F(RefusedGraphDef, IsOneWithOpsThatOnlyPassesMake) {
  expect_refused<InvalidArgumentError>(
      graph_of({node("a", "Feed", {}, {{"feed", 5}, {"dtype", DType::f32}, {"shape", Shape()}})}),
      HasSubstr("only kolo's passes make nodes of this op"));
}

TEST_F(RefusedGraphDef, IsOneFromANewerKolo) {
  GraphDef definition = graph_of({});
  definition.min_consumer = kGraphDefVersion + 1;
  expect_refused<FailedPreconditionError>(definition, HasSubstr("needs a reader of version 2"));
}

TEST_F(RefusedGraphDef, NamesMappedTensorsThatItLacks) {
  const Output mine = constant(s, 1.0f);
  for (const char* name : {"b", "a:1", "a:x"})
    expect_refused<InvalidArgumentError>(
        graph_of({number("a", 1)}),
        HasSubstr(std::string("Attempted to map inputs that were not found in graph_def: [") + name),
        {.input_map = {{name, mine}}});
}

TEST_F(RefusedGraphDef, MayNotChangeAFinalizedGraph) {
  graph.finalize();
  expect_refused<FailedPreconditionError>(graph_of({}),
                                          HasSubstr("Graph is finalized and cannot be modified."));
}

TEST_F(RefusedGraphDef, NamesACollectionWithoutItsNode) {
  GraphDef definition = graph_of({});
  definition.collections["variables"] = {"v"};
  expect_refused<InvalidArgumentError>(definition, AllOf(HasSubstr("variables"), HasSubstr("\"v\"")));
}

}  // namespace
}  // namespace kolo
