#include <kolo/core/ops/indexing.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::Each;
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

auto encoded(std::int64_t depth, OneHotOptions options = {}) {
  return [=](Scope& s, const Outputs& x) { return one_hot(s, x[0], depth, options); };
}

TEST(OneHot, MarksTheClass) {
  const Tensor y = run_op({Tensor::of<std::int32_t>({2}, {2, 0})}, encoded(3));
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_THAT(y.span<float>(), ElementsAre(0, 0, 1, 1, 0, 0));
}

TEST(OneHot, PutsTheClassesAlongAnyAxis) {
  const Tensor x = Tensor::of<std::int64_t>({2, 2}, {0, 1, 1, 0});
  const Tensor first = run_op({x}, encoded(2, {.axis = 0}));
  EXPECT_THAT(first.span<float>(), ElementsAre(1, 0, 0, 1, 0, 1, 1, 0));
  const Tensor middle = run_op({x}, encoded(3, {.axis = 1}));
  EXPECT_EQ(middle.shape(), (Shape{2, 3, 2}));
  EXPECT_THAT(middle.span<float>(), ElementsAre(1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0));
}

TEST(OneHot, LeavesOutClassesThatThereAreNot) {
  EXPECT_THAT(run_op({Tensor::of<std::int32_t>({2}, {-1, 2})}, encoded(2)).span<float>(), Each(0));
}

TEST(OneHot, TakesValuesAndTypes) {
  const Tensor x = Tensor::of<std::uint8_t>({1}, {1});
  EXPECT_THAT(run_op({x}, encoded(2, {.on = 5, .off = -1, .dtype = DType::i64})).span<std::int64_t>(),
              ElementsAre(-1, 5));
  EXPECT_THAT(run_op({x}, encoded(2, {.dtype = DType::boolean})).span<bool>(), ElementsAre(false, true));
}

TEST(OneHot, TakesScalarsAndEmptyTensors) {
  EXPECT_THAT(run_op({Tensor::scalar<std::int32_t>(1)}, encoded(3)).span<float>(), ElementsAre(0, 1, 0));
  EXPECT_EQ(run_op({Tensor(DType::i32, {0})}, encoded(3)).shape(), (Shape{0, 3}));
  EXPECT_EQ(run_op({Tensor::scalar<std::int32_t>(1)}, encoded(0)).shape(), (Shape{0}));
}

TEST(OneHot, KnowsItsDepth) {
  expect_shape({{{-1, 4}, DType::i32}}, encoded(3, {.axis = 1}), {-1, 3, 4});
  expect_shape({{Shape::unknown_rank(), DType::i32}}, encoded(3), Shape::unknown_rank());
}

TEST(OneHot, RefusesAxisOutsideTheResult) {
  EXPECT_THAT([] { run_op({Tensor(DType::i32, {2})}, encoded(3, {.axis = 2})); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("axis 2"), HasSubstr("[2]"))));
}

auto values(std::int64_t k) {
  return [=](Scope& s, const Outputs& x) { return top_k(s, x[0], k).values; };
}
auto indices(std::int64_t k) {
  return [=](Scope& s, const Outputs& x) { return top_k(s, x[0], k).indices; };
}
auto precision(std::int64_t k) {
  return [=](Scope& s, const Outputs& x) { return in_top_k(s, x[0], x[1], k); };
}

TEST(TopK, TakesTheLargestOfEachRow) {
  const Tensor x = Tensor::of<float>({2, 4}, {1, 9, 3, 5, -2, -8, -1, -4});
  EXPECT_THAT(run_op({x}, values(2)).span<float>(), ElementsAre(9, 5, -1, -2));
  EXPECT_THAT(run_op({x}, indices(2)).span<std::int32_t>(), ElementsAre(1, 3, 2, 0));
}

TEST(TopK, PrefersTheFirstOfEqualOnes) {
  const Tensor x = Tensor::of<std::int64_t>({5}, {7, 3, 7, 7, 3});
  EXPECT_THAT(run_op({x}, indices(4)).span<std::int32_t>(), ElementsAre(0, 2, 3, 1));
}

TEST(TopK, NanIsNotHidden) {
  const Tensor x = Tensor::of<double>({3}, {1, std::nan(""), 3});
  EXPECT_THAT(run_op({x}, indices(3)).span<std::int32_t>(), ElementsAre(1, 2, 0));
}

TEST(TopK, SortsAWholeRow) {
  const Tensor x = test_numbers({3, 101});
  const Tensor y = run_op({x}, values(101));
  for (int row = 0; row < 3; ++row) {
    std::vector<double> expected(x.data<double>() + row * 101, x.data<double>() + (row + 1) * 101);
    std::sort(expected.begin(), expected.end(), std::greater<>());
    for (int i = 0; i < 101; ++i) EXPECT_EQ(y.data<double>()[row * 101 + i], expected[i]);
  }
}

TEST(TopK, TakesNone) {
  EXPECT_EQ(run_op({Tensor(DType::f32, {2, 3})}, values(0)).shape(), (Shape{2, 0}));
  EXPECT_EQ(run_op({Tensor(DType::f32, {0, 3})}, values(2)).shape(), (Shape{0, 2}));
}

TEST(TopK, ReplacesTheLastDimension) {
  expect_shape({{-1, 5}}, values(3), {-1, 3});
  expect_shape({{-1, -1}}, indices(3), {-1, 3});
}

TEST(TopK, RefusesMoreThanThereAre) {
  EXPECT_THAT(
      [] {
        run_op({Tensor(DType::f32, {2, 3})}, values(4));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("input must have at least k columns. Had 3, needed 4")));
  EXPECT_THAT([] { run_op({Tensor::scalar(1.0f)}, values(1)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("input must be >= 1-D, got shape []")));
}

TEST(TopK, GradientGoesToWhereTheValuesStood) {
  for (const bool known_shapes : {true, false})
    expect_gradients({test_numbers({2, 5})}, values(2), {.known_shapes = known_shapes});
}

TEST(InTopK, CountsTheLargerPredictions) {
  const Tensor predictions = Tensor::of<float>({3, 3}, {1, 2, 3, 1, 2, 3, 1, 2, 3});
  const Tensor targets = Tensor::of<std::int32_t>({3}, {0, 1, 2});
  EXPECT_THAT(run_op({predictions, targets}, precision(1)).span<bool>(), ElementsAre(false, false, true));
  EXPECT_THAT(run_op({predictions, targets}, precision(2)).span<bool>(), ElementsAre(false, true, true));
}

TEST(InTopK, EqualPredictionsAllCount) {
  const Tensor predictions = Tensor::of<double>({1, 3}, {5, 5, 5});
  EXPECT_THAT(run_op({predictions, Tensor::of<std::int64_t>({1}, {2})}, precision(1)).span<bool>(),
              ElementsAre(true));
}

TEST(InTopK, IsFalseWithoutAnAnswer) {
  const Tensor predictions = Tensor::of<float>({3, 2}, {1, 2, 1, 2, std::nanf(""), 2});
  EXPECT_THAT(run_op({predictions, Tensor::of<std::int32_t>({3}, {2, -1, 1})}, precision(2)).span<bool>(),
              Each(false));
}

TEST(InTopK, HasOneAnswerForEachRow) {
  expect_shape({{-1, 10}, {{4}, DType::i32}}, precision(1), {4});
  EXPECT_THAT(
      [] {
        run_op({Tensor(DType::f32, {3, 2}), Tensor(DType::i32, {2})}, precision(1));
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(
          HasSubstr("First dimension of predictions 3 must match length of targets 2"), HasSubstr("[3,2]"))));
}

const Tensor kRows = Tensor::of<float>({3, 2}, {1, 2, 10, 20, 100, 200});

Tensor segments(std::initializer_list<std::int64_t> numbers) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
}

Tensor summed(const Tensor& rows, const Tensor& numbers, std::int64_t count) {
  return run_op({rows, numbers},
                [=](Scope& s, const Outputs& x) { return unsorted_segment_sum(s, x[0], x[1], count); });
}

TEST(UnsortedSegmentSum, AddsRowsOfOneNumberAndLeavesTheOthersZero) {
  const Tensor sums = summed(kRows, segments({3, 0, 3}), 4);
  EXPECT_EQ(sums.shape(), (Shape{4, 2}));
  EXPECT_THAT(sums.span<float>(), ElementsAre(10, 20, 0, 0, 0, 0, 101, 202));
}

TEST(UnsortedSegmentSum, OfNoRowsIsZero) {
  EXPECT_THAT(summed(Tensor(DType::f32, {0, 2}), segments({}), 2).span<float>(), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(summed(Tensor(DType::f32, {0, 2}), segments({}), 0).elements(), 0);
}

TEST(UnsortedSegmentSum, NamesTheNumberThatIsOutOfRange) {
  EXPECT_THAT(
      [] {
        summed(kRows, segments({0, 1, 2}), 2);
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Index 2 at offset 2 in indices is out of range")));
}

TEST(UnsortedSegmentSum, NamesRowsAndNumbersThatDoNotFit) {
  EXPECT_THAT(
      [] {
        summed(kRows, segments({0, 1}), 2);
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[3,2]"), HasSubstr("[2]"))));
}

TEST(UnsortedSegmentSum, GradientOfEveryRowIsThatOfItsSum) {
  expect_gradients({test_numbers({4, 3})}, [](Scope& s, const Outputs& x) {
    return unsorted_segment_sum(s, square(s, x[0]), constant(s, segments({1, 0, 1, 1})), 3);
  });
}

TEST(UnsortedSegmentSum, KnowsHowManyRowsThereAre) {
  expect_shape({{-1, 3}, {{-1}, DType::i32}},
               [](Scope& s, const Outputs& x) { return unsorted_segment_sum(s, x[0], x[1], 7); }, {7, 3});
}

// What gradients that are slices compute where somebody reads them as a tensor: core/graph/indexed_slices.h.
TEST(SlicesToDense, AddsRowsThatAreListedTwice) {
  const Tensor dense = run_op({kRows, segments({1, 1, 0})}, [](Scope& s, const Outputs& x) {
    return to_dense(s, {.values = x[0], .indices = x[1], .dense_shape = {3, 2}});
  });
  EXPECT_THAT(dense.span<float>(), ElementsAre(100, 200, 11, 22, 0, 0));
}

TEST(SlicesToDense, TakesTheShapeOfTheTensorThatItStandsFor) {
  expect_shape({{-1, 3}, {{-1}, DType::i32}, {9, -1}},
               [](Scope& s, const Outputs& x) {
                 return to_dense(
                     s,
                     {.values = x[0], .indices = x[1], .dense_shape = Shape::unknown_rank(), .like = x[2]});
               },
               {9, 3});
}

TEST(SlicesToDense, GradientOfEveryRowIsThatOfItsSum) {
  expect_gradients({test_numbers({4, 3})}, [](Scope& s, const Outputs& x) {
    return to_dense(
        s,
        {.values = square(s, x[0]), .indices = constant(s, segments({1, 0, 1, 1})), .dense_shape = {3, 3}});
  });
}

auto numbers(DType dtype, double start, double limit, double delta = 1) {
  return [=](Scope& s, const Outputs&) { return range(s, dtype, start, limit, delta); };
}

TEST(Range, CountsUpAndDown) {
  EXPECT_THAT(run_op({}, numbers(DType::i32, 0, 4)).span<std::int32_t>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(run_op({}, numbers(DType::i64, 5, -2, -3)).span<std::int64_t>(), ElementsAre(5, 2, -1));
  EXPECT_THAT(run_op({}, numbers(DType::f32, 0.5, 2.01, 0.5)).span<float>(), ElementsAre(0.5f, 1, 1.5f, 2));
}

TEST(Range, DoesNotDrift) {
  const Tensor y = run_op({}, numbers(DType::f64, 0, 1000, 0.1));
  ASSERT_EQ(y.elements(), 10000);
  EXPECT_DOUBLE_EQ(y.data<double>()[9999], 999.9);
}

TEST(Range, HasAsManyElementsAsFit) {
  expect_shape({}, numbers(DType::i32, 0, 10, 3), {4});
  expect_shape({}, numbers(DType::i32, 0, 9, 3), {3});
  expect_shape({}, numbers(DType::f32, 1, 0, 1), {0});
}

TEST(Range, RefusesWhatIsNoRange) {
  EXPECT_THAT([] { run_op({}, numbers(DType::f32, 0, 1, 0)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("the last not 0")));
  EXPECT_THAT([] { run_op({}, numbers(DType::i32, 0, 1.5)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("1.5 is not a whole number")));
  EXPECT_THAT([] { run_op({}, numbers(DType::boolean, 0, 1)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("bool was asked for")));
}

}  // namespace
}  // namespace kolo
