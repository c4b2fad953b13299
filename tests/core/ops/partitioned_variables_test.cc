#include <kolo/core/ops/partitioned_variables.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/graph/graph_def.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/gradient_check.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const PartInitializer kZeros = [](const Scope& s, const Shape& part) { return zeros(s, DType::f32, part); };

template <typename Call>
void expect_refused(const Call& call, const std::string& text) {
  EXPECT_THAT(call, ThrowsMessage<InvalidArgumentError>(HasSubstr(text)));
}

// Row 24 of the worked examples of clusters.
TEST(Partitioner, OfBytesDividesUntilEachPartFits) {
  EXPECT_THAT(variable_axis_size(65536)({1000, 64}, DType::f32), ElementsAre(4, 1));
  EXPECT_THAT(variable_axis_size(65536, 0, 2)({1000, 64}, DType::f32), ElementsAre(2, 1));
  EXPECT_THAT(variable_axis_size(1000)({50, 1000}, DType::f32), ElementsAre(50, 1));
  EXPECT_THAT(variable_axis_size(8000, 1)({6, 500}, DType::f64), ElementsAre(1, 4));
}

// Row 25.
TEST(Partitioner, OfSlicesMakesNoPartTooSmall) {
  EXPECT_THAT(min_max(8)({1000, 300}, DType::f32), ElementsAre(5, 1));
  EXPECT_THAT(min_max(8)({100, 10}, DType::f32), ElementsAre(1, 1));
  EXPECT_THAT(min_max(8)({2, 400000}, DType::f32), ElementsAre(2, 1));
  EXPECT_THAT(min_max(3)({1000, 300}, DType::f32), ElementsAre(3, 1));
}

TEST(Partitioner, OfANumberMakesNoMorePartsThanThereAreElements) {
  EXPECT_THAT(fixed_size(3)({11, 4}, DType::f32), ElementsAre(3, 1));
  EXPECT_THAT(fixed_size(9, 1)({11, 4}, DType::f32), ElementsAre(1, 4));
}

TEST(Partitioner, MakesOnePartOfNothing) {
  for (const Partitioner& partitioner : {fixed_size(3), variable_axis_size(8), min_max(3)}) {
    EXPECT_THAT(partitioner({0, 4}, DType::f32), ElementsAre(1, 1));
    EXPECT_THAT(partitioner({4, 0}, DType::f32).size(), 2U);
  }
  EXPECT_THAT(variable_axis_size(8)({4, 0}, DType::f32), ElementsAre(1, 1));
}

TEST(Partitioner, RefusesNumbersBelow1AndAxesThatAreNone) {
  expect_refused([] { fixed_size(0); }, "the number of parts is 0");
  expect_refused([] { variable_axis_size(0); }, "max_bytes is 0");
  expect_refused([] { variable_axis_size(1, 0, 0); }, "max_shards is 0");
  expect_refused([] { min_max(0); }, "the largest number of parts is 0");
  expect_refused([] { min_max(1, 0, 0); }, "min_slice is 0");
  for (const Partitioner& partitioner : {fixed_size(2, 2), variable_axis_size(2, 2), min_max(2, -1)})
    expect_refused([&] { partitioner({3, 4}, DType::f32); }, "a variable of shape [3,4] has no dimension");
}

class PartitionedVariables : public testing::Test {
 protected:
  // Element [i, j] is 10 i + j.
  PartitionedVariable numbered(const Shape& shape, const Partitioner& partitioner, int axis = 0) {
    std::int64_t first = 0;
    const PartInitializer number = [&](const Scope& s, const Shape& part) {
      Tensor value(DType::f32, part);
      for (std::int64_t i = 0; i < part.dim(0); ++i)
        for (std::int64_t j = 0; j < part.dim(1); ++j)
          value.data<float>()[i * part.dim(1) + j] =
              static_cast<float>(axis == 0 ? 10 * (i + first) + j : 10 * i + j + first);
      first += part.dim(axis);
      return constant(s, value);
    };
    return partitioned_variable(s_.named("e"), shape, number, partitioner);
  }
  Tensor run(const Output& output, const Feeds& feeds = {}) {
    Session session(graph_);
    session.run(global_variables_initializer(s_));
    return session.run(output, feeds);
  }

  Graph graph_;
  Scope s_{graph_};
};

TEST_F(PartitionedVariables, AreCutIntoPartsOfWhichTheFirstAreLarger) {
  const PartitionedVariable e = numbered({11, 4}, fixed_size(3));
  EXPECT_EQ(e.name(), "e");
  EXPECT_EQ(e.shape(), (Shape{11, 4}));
  ASSERT_EQ(e.parts().size(), 3U);
  for (const auto& [part, name, rows] :
       {std::tuple{0, "e/part_0", 4}, std::tuple{1, "e/part_1", 4}, std::tuple{2, "e/part_2", 3}}) {
    EXPECT_EQ(e.parts()[part].name(), name);
    EXPECT_EQ(e.parts()[part].shape(), (Shape{rows, 4}));
  }
  EXPECT_EQ(trainable_variables(graph_).size(), 3U);
}

TEST_F(PartitionedVariables, AreReadAsOneTensor) {
  const Output rows = numbered({5, 2}, fixed_size(3)).read(s_);
  EXPECT_THAT(run(rows).span<float>(), ElementsAre(0, 1, 10, 11, 20, 21, 30, 31, 40, 41));
  const PartitionedVariable columns = numbered({2, 5}, fixed_size(2, 1), 1);
  EXPECT_EQ(columns.name(), "e_1");
  EXPECT_EQ(columns.axis(), 1);
  EXPECT_THAT(run(columns.read(s_)).span<float>(), ElementsAre(0, 1, 2, 3, 4, 10, 11, 12, 13, 14));
}

TEST_F(PartitionedVariables, AreReadAsTheyAreInTheirTurn) {
  const PartitionedVariable e = numbered({3, 1}, fixed_size(2));
  const Output before = e.read(s_),
               update = assign_add(s_, e.parts()[1], constant(s_, Tensor::of<float>({1, 1}, {5})));
  const Output after = e.read(s_.control_dependencies({update.node}));
  Session session(graph_);
  session.run(global_variables_initializer(s_));
  const auto values = session.run({before, after});
  EXPECT_THAT(values[0].span<float>(), ElementsAre(0, 10, 20));
  EXPECT_THAT(values[1].span<float>(), ElementsAre(0, 10, 25));
}

TEST_F(PartitionedVariables, OfOnePartAreThatPart) {
  const PartitionedVariable e = numbered({3, 2}, fixed_size(1));
  EXPECT_EQ(e.parts().front().name(), "e/part_0");
  EXPECT_EQ(e.read(s_), e.parts().front().read());
  const PartitionedVariable scalar = partitioned_variable(
      s_.named("x"), {}, kZeros, [](const Shape&, DType) { return std::vector<std::int64_t>(); });
  EXPECT_EQ(scalar.parts().front().shape(), Shape());
  const PartitionedVariable empty = partitioned_variable(s_.named("y"), {0, 3}, kZeros, fixed_size(2));
  EXPECT_EQ(empty.parts().front().shape(), (Shape{0, 3}));
}

TEST_F(PartitionedVariables, MayBeLocalOrNotTrained) {
  partitioned_variable(s_.named("l"), {4}, kZeros, fixed_size(2), {.trainable = false, .local = true});
  EXPECT_EQ(local_variables(graph_).size(), 2U);
  EXPECT_EQ(trainable_variables(graph_).size(), 0U);
  EXPECT_EQ(global_variables(graph_).size(), 0U);
}

TEST_F(PartitionedVariables, StandInTheScopesWhereTheyAreMade) {
  const Scope inner = s_.name_scope("tower").device("/job:ps/task:1");
  const PartitionedVariable e = partitioned_variable(inner.named("e"), {4}, kZeros, fixed_size(2));
  EXPECT_EQ(e.name(), "tower/e");
  EXPECT_EQ(e.parts()[1].ref().node->requested_device(), "/job:ps/task:1");
  const Node& first_value = *e.parts()[1].initializer().node->input(1).node;
  EXPECT_EQ(first_value.requested_device(), "") << first_value.name();
}

TEST_F(PartitionedVariables, RefuseWhatDoesNotFit) {
  const auto parts = [](std::vector<std::int64_t> counts) -> Partitioner {
    return [counts](const Shape&, DType) { return counts; };
  };
  const auto refuses = [&](const Shape& shape, const PartInitializer& initializer,
                           const Partitioner& partitioner, const std::string& text) {
    expect_refused([&] { partitioned_variable(s_.named("e"), shape, initializer, partitioner); }, text);
  };
  refuses({4, 4}, kZeros, parts({2, 2}), "asks for [2,2] parts; one dimension alone may be cut");
  refuses({4, 4}, kZeros, parts({2}), "a number for each dimension");
  refuses({4, 4}, kZeros, parts({5, 1}), "no part may be empty");
  refuses({4, 4}, kZeros, parts({0, 1}), "no part may be empty");
  refuses({-1, 4}, kZeros, fixed_size(2), "it must be fully known");
  refuses({4}, kZeros, Partitioner(), "the partitioner must be callable");
  refuses({4}, PartInitializer(), fixed_size(2), "the initializer must be callable");
  refuses(
      {4}, [](const Scope& s, const Shape&) { return zeros(s, DType::f32, {4}); }, fixed_size(2),
      "the initializer of a part made f32 [4]; it must be f32 [2]");
  refuses(
      {4}, [](const Scope& s, const Shape& part) { return zeros(s, DType::f64, part); }, fixed_size(2),
      "made f64 [2]");
  EXPECT_EQ(global_variables(graph_).size(), 0U);
}

TEST_F(PartitionedVariables, SayOfWhatTheyAreSlices) {
  const PartitionedVariable e = numbered({2, 5}, fixed_size(2, 1), 1);
  const VariableSlice second{.whole = "e", .shape = {2, 5}, .axis = 1, .first = 3};
  EXPECT_EQ(variable_slice(e.parts()[1]), second);
  EXPECT_EQ(variable_slice(Variable(s_.named("v"), zeros(s_, DType::f32, {2}))), std::nullopt);
  Graph again;
  const Scope imported(again);
  import_graph_def(imported, to_graph_def(graph_));
  EXPECT_EQ(variable_slice(Variable::of(*again.find_node("e/part_1"))), second);
}

TEST_F(PartitionedVariables, TakeThePrefixOfAnImport) {
  const Variable v(s_.named("e/part_1"), zeros(s_, DType::f32, {2, 3}));
  set_variable_slice(graph_, v, {.whole = "e", .shape = {5, 3}, .axis = 0, .first = 3});
  Graph again;
  import_graph_def(Scope(again), to_graph_def(graph_), {.prefix = "a"});
  EXPECT_EQ(variable_slice(Variable::of(*again.find_node("a/e/part_1")))->whole, "a/e");
}

TEST_F(PartitionedVariables, RefuseASliceOfAGraphThatIsNone) {
  const Variable v(s_.named("v"), zeros(s_, DType::f32, {2, 3}));
  expect_refused(
      [&] {
        s_.add("SliceOf", {v.ref()}, {{"whole", "w"}, {"shape", Shape{2, 100}}, {"axis", 0}, {"first", 0}},
               "v/slice_of");
      },
      "is no slice of");
}

TEST_F(PartitionedVariables, RefuseASliceThatIsNone) {
  const Variable v(s_.named("v"), zeros(s_, DType::f32, {2, 3}));
  for (const VariableSlice& wrong : {VariableSlice{.whole = "w", .shape = {5, 3}, .axis = 0, .first = 4},
                                     VariableSlice{.whole = "w", .shape = {5, 4}, .axis = 0, .first = 0},
                                     VariableSlice{.whole = "w", .shape = {5, 3}, .axis = 2, .first = 0},
                                     VariableSlice{.whole = "w", .shape = {5, 3}, .axis = 0, .first = -1},
                                     VariableSlice{.whole = "w", .shape = {6}, .axis = 0, .first = 0},
                                     VariableSlice{.whole = "", .shape = {5, 3}, .axis = 0, .first = 0}})
    expect_refused([&] { set_variable_slice(graph_, v, wrong); }, "is no slice of");
}

// Row 26.
TEST_F(PartitionedVariables, AreLookedUpByModOrDiv) {
  std::vector<Variable> parts;
  for (int part = 0; part < 4; ++part) {
    const std::int64_t rows = part < 3 ? 3 : 2;
    Tensor value(DType::f32, {rows, 1});
    for (std::int64_t row = 0; row < rows; ++row)
      value.data<float>()[row] = static_cast<float>(10 * part + row);
    parts.emplace_back(s_.named("part"), constant(s_, value));
  }
  const Output ids = constant(s_, Tensor::of<std::int32_t>({5}, {0, 5, 8, 9, 10}));
  EXPECT_THAT(run(embedding_lookup(s_, parts, ids)).span<float>(), ElementsAre(0, 11, 2, 12, 22));
  EXPECT_THAT(run(embedding_lookup(s_, parts, ids, PartitionStrategy::div)).span<float>(),
              ElementsAre(0, 12, 22, 30, 31));
}

TEST_F(PartitionedVariables, AreLookedUpUnderAnyShapeOfIds) {
  const PartitionedVariable e = numbered({7, 2}, fixed_size(3));
  const Tensor matrix = Tensor::of<std::int64_t>({2, 2}, {6, 0, 3, 3}), none(DType::i64, {0});
  const auto lookup = [&](const Output& ids, const Feeds& feeds = {}) {
    return run(embedding_lookup(s_, e, ids, PartitionStrategy::div), feeds);
  };
  const Output open = placeholder(s_, DType::i64), rows = placeholder(s_, DType::i64, {-1}),
               table = placeholder(s_, DType::i64, {-1, 2});
  for (const Tensor& found :
       {lookup(constant(s_, matrix)), lookup(open, {{open, matrix}}), lookup(table, {{table, matrix}})}) {
    EXPECT_EQ(found.shape(), (Shape{2, 2, 2}));
    EXPECT_THAT(found.span<float>(), ElementsAre(60, 61, 0, 1, 30, 31, 30, 31));
  }
  EXPECT_THAT(lookup(rows, {{rows, matrix.reshaped({4})}}).shape(), (Shape{4, 2}));
  EXPECT_EQ(lookup(rows, {{rows, none}}).shape(), (Shape{0, 2}));
  EXPECT_THAT(lookup(constant(s_, Tensor::scalar<std::int32_t>(6))).span<float>(), ElementsAre(60, 61));
}

TEST_F(PartitionedVariables, AreLookedUpWhereTheyLie) {
  const PartitionedVariable e = numbered({7, 2}, fixed_size(2));
  embedding_lookup(s_.named("find"), e, placeholder(s_, DType::i32, {-1}));
  const Node& gather = *graph_.find_node("find/Gather_1");
  EXPECT_THAT(gather.colocation_groups(), ElementsAre("loc:@e/part_1"));
}

TEST_F(PartitionedVariables, NameAnIdThatIsNone) {
  const PartitionedVariable e = numbered({7, 2}, fixed_size(2));
  for (const std::int32_t id : {-1, 7, 1000})
    for (const PartitionStrategy strategy : {PartitionStrategy::mod, PartitionStrategy::div}) {
      const Output ids = constant(s_, Tensor::of<std::int32_t>({2}, {0, id}));
      EXPECT_THROW(run(embedding_lookup(s_, e, ids, strategy)), InvalidArgumentError) << id;
    }
}

TEST_F(PartitionedVariables, AreLookedUpWithMorePartsThanRows) {
  std::vector<Variable> parts;
  for (const std::int64_t rows : {1, 1, 0})
    parts.emplace_back(s_.named("part"), fill(s_, DType::f32, {rows, 1}, static_cast<double>(parts.size())));
  const Output ids = constant(s_, Tensor::of<std::int32_t>({2}, {1, 0}));
  for (const PartitionStrategy strategy : {PartitionStrategy::mod, PartitionStrategy::div})
    EXPECT_THAT(run(embedding_lookup(s_, parts, ids, strategy)).span<float>(), ElementsAre(1, 0));
}

// Variables without memory: nothing is run.
TEST_F(PartitionedVariables, OfMoreRowsThan32BitsCountAreLookedUpWith64) {
  const PartitionedVariable e =
      partitioned_variable(s_.named("e"), {std::int64_t{3} << 30, 1}, kZeros, fixed_size(2));
  const Output found =
      embedding_lookup(s_.named("find"), e, placeholder(s_, DType::i32, {4}), PartitionStrategy::div);
  EXPECT_EQ(found.shape(), (Shape{4, 1}));
  EXPECT_EQ(graph_.find_node("find/DynamicPartition")->input(0).dtype(), DType::i64);
}

TEST_F(PartitionedVariables, AreNoTableWhereTheirRowsAreCutOrUneven) {
  const Output ids = constant(s_, Tensor::of<std::int32_t>({1}, {0}));
  const PartitionedVariable columns = numbered({2, 5}, fixed_size(2, 1), 1);
  expect_refused([&] { embedding_lookup(s_, columns, ids); }, "is cut along dimension 1");
  expect_refused([&] { embedding_lookup(s_, std::vector<Variable>(), ids); }, "the table has no part");
  const Variable three(s_.named("three"), zeros(s_, DType::f32, {3, 2})),
      two(s_.named("two"), zeros(s_, DType::f32, {2, 2})),
      wide(s_.named("wide"), zeros(s_, DType::f32, {3, 3})),
      doubles(s_.named("doubles"), zeros(s_, DType::f64, {3, 2}));
  expect_refused([&] { embedding_lookup(s_, {two, three}, ids); }, "\"two\" has 2 of 5 rows");
  expect_refused([&] { embedding_lookup(s_, {three, wide}, ids); }, "alike but for their rows");
  expect_refused([&] { embedding_lookup(s_, {three, doubles}, ids); }, "alike but for their rows");
}

TEST_F(PartitionedVariables, HaveSlicesAsGradientsOfALookup) {
  const PartitionedVariable e = numbered({7, 2}, fixed_size(3));
  const Output ids = constant(s_, Tensor::of<std::int32_t>({4}, {4, 0, 4, 6}));
  const Output dy = constant(s_, Tensor::of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  const Outputs dx =
      gradients(s_, {embedding_lookup(s_, e, ids)}, {e.parts()[0], e.parts()[1], e.parts()[2]}, {dy});
  ASSERT_TRUE(indexed_slices(dx[1]));
  EXPECT_EQ(indexed_slices(dx[1])->dense_shape, (Shape{2, 2}));
  EXPECT_EQ(run(indexed_slices(dx[2])->indices).shape(), (Shape{0}));
  // 0 and 6 are rows 0 and 2 of part 0, 4 is row 1 of part 1.
  EXPECT_THAT(run(dx[0]).span<float>(), ElementsAre(3, 4, 0, 0, 7, 8));
  EXPECT_THAT(run(dx[1]).span<float>(), ElementsAre(0, 0, 6, 8));
  EXPECT_THAT(run(dx[2]).span<float>(), ElementsAre(0, 0, 0, 0));
}

TEST_F(PartitionedVariables, HaveTheirPartOfTheGradientOfARead) {
  const PartitionedVariable e = numbered({3, 1}, fixed_size(2));
  const Outputs dx = gradients(s_, {square(s_, e.read(s_))}, {e.parts()[0], e.parts()[1]});
  EXPECT_THAT(run(dx[0]).span<float>(), ElementsAre(0, 20));
  EXPECT_THAT(run(dx[1]).span<float>(), ElementsAre(40));
}

}  // namespace
}  // namespace kolo
