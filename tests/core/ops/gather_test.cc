#include <kolo/core/ops/gather.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/elementwise.h>
#include <kolo/core/ops/variable.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const Tensor kTable = Tensor::of<float>({3, 2}, {0, 1, 10, 11, 20, 21});

Tensor ids(std::initializer_list<std::int32_t> numbers) {
  return Tensor::of<std::int32_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
}

Tensor gathered(const Tensor& params, const Tensor& indices, int axis = 0) {
  return run_op({params, indices}, [=](Scope& s, const Outputs& x) { return gather(s, x[0], x[1], axis); });
}

TEST(Gather, TakesRowsInTheOrderOfTheirNumbers) {
  const Tensor y = gathered(kTable, ids({2, 0, 2}));
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  EXPECT_THAT(y.span<float>(), ElementsAre(20, 21, 0, 1, 20, 21));
}

TEST(Gather, PutsTheShapeOfTheIndicesInPlaceOfTheAxis) {
  const Tensor indices = Tensor::of<std::int64_t>({2, 1}, {1, 0});
  const Tensor y = gathered(kTable, indices, -1);
  EXPECT_EQ(y.shape(), (Shape{3, 2, 1}));
  EXPECT_THAT(y.span<float>(), ElementsAre(1, 0, 11, 10, 21, 20));
}

TEST(Gather, TakesAScalarIndexAndNoIndex) {
  const Tensor one = gathered(kTable, Tensor::scalar<std::int32_t>(1));
  EXPECT_EQ(one.shape(), (Shape{2}));
  EXPECT_THAT(one.span<float>(), ElementsAre(10, 11));
  EXPECT_EQ(gathered(kTable, ids({})).shape(), (Shape{0, 2}));
}

TEST(Gather, TakesEveryTypeOfNumber) {
  const Tensor bytes = Tensor::of<std::uint8_t>({3}, {7, 8, 9});
  EXPECT_THAT(gathered(bytes, ids({2, 1})).span<std::uint8_t>(), ElementsAre(9, 8));
}

TEST(Gather, IsTheSameOnAnyNumberOfThreads) {
  const Tensor table = test_numbers({500, 130});
  Tensor indices(DType::i64, {900});
  for (std::int64_t i = 0; i < 900; ++i) indices.data<std::int64_t>()[i] = i * 37 % 500;
  const Tensor one = gathered(table, indices);
  const IntraOpThreads threads(3);
  const Tensor three = gathered(table, indices);
  for (std::int64_t i = 0; i < one.elements(); ++i)
    ASSERT_EQ(three.data<double>()[i], one.data<double>()[i]) << "element " << i;
}

TEST(Gather, NamesTheIndexThatIsOutOfRange) {
  EXPECT_THAT(
      [] {
        gathered(kTable, ids({0, 3}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Index 3 at offset 1 in indices is out of range")));
  EXPECT_THAT(
      [] { gathered(kTable, ids({-1})); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Index -1 at offset 0 in indices is out of range")));
}

TEST(Gather, NamesAnAxisThatIsNone) {
  EXPECT_THAT([] { gathered(kTable, ids({0}), 2); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("axis 2")));
}

TEST(Gather, GradientAddsWhatIsGatheredTwice) {
  for (const bool known_shapes : {true, false})
    for (const int axis : {0, 1, -3}) {
      const Tensor indices = Tensor::of<std::int32_t>({2, 2}, {1, 0, 1, 1});
      expect_gradients(
          {test_numbers({3, 2, 2})},
          [&](Scope& s, const Outputs& x) { return gather(s, square(s, x[0]), constant(s, indices), axis); },
          {.known_shapes = known_shapes});
    }
}

TEST(Gather, KnowsTheShapeAsFarAsItsInputsAreKnown) {
  const auto rows = [](Scope& s, const Outputs& x) { return gather(s, x[0], x[1]); };
  expect_shape({{5, -1}, {{-1, 3}, DType::i32}}, rows, {-1, 3, -1});
  expect_shape({Shape::unknown_rank(), {{2}, DType::i64}}, rows, Shape::unknown_rank());
  expect_shape({{5, 2}, {Shape::unknown_rank(), DType::i64}}, rows, Shape::unknown_rank());
}

TEST(Gather, GradientAlongTheFirstAxisIsSlices) {
  Graph graph;
  Scope s(graph);
  const Variable table(s.named("table"), constant(s, kTable));
  const Output indices = placeholder(s, DType::i32, {-1, 2}), dy = placeholder(s, DType::f32, {-1, 2, 2});
  const Output gradient = gradients(s, {embedding_lookup(s, table, indices)}, {table.read()}, {dy}).at(0);
  const auto slices = indexed_slices(gradient);
  ASSERT_TRUE(slices);
  EXPECT_EQ(slices->dense_shape, (Shape{3, 2}));
  EXPECT_EQ(slices->values.shape(), (Shape{-1, 2}));
  EXPECT_EQ(slices->indices.shape(), (Shape{-1}));
}

TEST(Gather, GradientAlongAnotherAxisCanBeDifferentiatedAgain) {
  const Tensor indices = Tensor::of<std::int32_t>({3}, {1, 0, 1});
  const auto along_1 = [&](Scope& s, Output x) { return gather(s, x, constant(s, indices), 1); };
  expect_gradients({test_numbers({3, 2})}, [&](Scope& s, const Outputs& x) { return along_1(s, x[0]); });
  expect_gradients({test_numbers({3, 2}), test_numbers({3, 3}, 1)},
                   [&](Scope& s, const Outputs& x) {
                     return gradients(s, {along_1(s, x[0])}, {x[0]}, {square(s, x[1])}).at(0);
                   },
                   {.constant = {0}});
}

TEST(Gather, GradientAlongAnotherAxisIsDense) {
  Graph graph;
  Scope s(graph);
  const Variable table(s.named("table"), constant(s, kTable));
  const Output y = gather(s, table, constant(s, ids({1})), 1);
  EXPECT_FALSE(indexed_slices(gradients(s, {y}, {table.read()}).at(0)));
}

}  // namespace
}  // namespace kolo
