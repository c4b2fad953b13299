#include <kolo/core/graph/indexed_slices.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>

#include "tests/core/run_op.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const Tensor kRows = Tensor::of<float>({3, 2}, {1, 2, 10, 20, 100, 200});

Tensor segments(std::initializer_list<std::int64_t> numbers) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
}

TEST(IndexedSlices, AreADenseTensorWhereOneIsReadFromThem) {
  const Tensor dense = run_op({kRows, segments({1, 1, 0})}, [](Scope& s, const Outputs& x) {
    return neg(s, to_dense(s, {.values = x[0], .indices = x[1], .dense_shape = {3, 2}}));
  });
  EXPECT_THAT(dense.span<float>(), ElementsAre(-100, -200, -11, -22, 0, 0));
}

TEST(IndexedSlices, AreFoundAgainInTheGradientThatWasMadeOfThem) {
  Graph graph;
  Scope s(graph);
  const Output values = constant(s, kRows), indices = constant(s, segments({1, 1, 0}));
  const auto found =
      indexed_slices(to_dense(s, {.values = values, .indices = indices, .dense_shape = {3, 2}}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->values, values);
  EXPECT_EQ(found->indices, indices);
  EXPECT_EQ(found->dense_shape, (Shape{3, 2}));
  EXPECT_FALSE(indexed_slices(values));
  EXPECT_FALSE(indexed_slices(Output()));
}

TEST(IndexedSlices, RefuseRowsThatTheTensorHasNot) {
  Graph graph;
  Scope s(graph);
  const Output values = constant(s, kRows), indices = constant(s, segments({1, 1, 0}));
  EXPECT_THAT(
      [&] {
        to_dense(s, {.values = values, .indices = indices, .dense_shape = {3, 5}});
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[3,2]"), HasSubstr("[3,5]"))));
}

struct JoinedSlices : testing::Test {
  // Rows of the table; their gradient is `dy` itself.
  Output rows(const Tensor& indices) { return gather(s, table, constant(s, indices)); }

  Graph graph;
  Scope s{graph};
  Output table = placeholder(s, DType::f32, {3, 2});
  Output dy = constant(s, Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  Output da = constant(s, Tensor::of<float>({1, 2}, {5, 6}));
  Feeds feeds = {{table, kRows}};
};

TEST_F(JoinedSlices, StandOneAfterTheOtherWithTheirDuplicates) {
  const Output first = rows(segments({2, 0})), second = rows(segments({2}));
  const Output gradient = gradients(s, {first, second}, {table}, {dy, da}).at(0);
  const auto slices = indexed_slices(gradient);
  ASSERT_TRUE(slices);
  Session session(graph);
  // The backward pass comes to the newer op first.
  EXPECT_THAT(session.run(slices->indices, feeds).span<std::int64_t>(), ElementsAre(2, 2, 0));
  EXPECT_THAT(session.run(slices->values, feeds).span<float>(), ElementsAre(5, 6, 1, 2, 3, 4));
  EXPECT_THAT(session.run(gradient, feeds).span<float>(), ElementsAre(3, 4, 0, 0, 6, 8));
}

TEST_F(JoinedSlices, TakeIndicesOfBothTypes) {
  const Output first = rows(segments({2, 0})), second = rows(Tensor::of<std::int32_t>({1}, {1}));
  const auto slices = indexed_slices(gradients(s, {first, second}, {table}, {dy, da}).at(0));
  ASSERT_TRUE(slices);
  EXPECT_EQ(slices->indices.dtype(), DType::i64);
}

TEST_F(JoinedSlices, AreASumWithADenseGradient) {
  const Output whole = constant(s, kRows);
  const Output gradient = gradients(s, {rows(segments({2, 0})), table}, {table}, {dy, whole}).at(0);
  EXPECT_EQ(gradient.node->op(), "AddN");
  EXPECT_THAT(Session(graph).run(gradient, feeds).span<float>(), ElementsAre(4, 6, 10, 20, 101, 202));
}

}  // namespace
}  // namespace kolo
