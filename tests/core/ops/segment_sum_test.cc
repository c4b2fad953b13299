#include <kolo/core/ops/segment_sum.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/elementwise.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

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

}  // namespace
}  // namespace kolo
