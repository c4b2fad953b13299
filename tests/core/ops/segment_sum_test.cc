#include <kolo/core/ops/segment_sum.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/elementwise.h>

#include "tests/core/gradient_check.h"
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

}  // namespace
}  // namespace kolo
