#include <gmock/gmock.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/compare.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Binary = Output (*)(const Scope&, Output, Output);

Tensor run_binary(Binary op, const Tensor& a, const Tensor& b) {
  return run_op({a, b}, [=](Scope& s, const Outputs& x) { return op(s, x[0], x[1]); });
}

TEST(Compare, TellsOrderOfEachPair) {
  const Tensor a = Tensor::of<float>({3}, {1, 2, 3}), b = Tensor::of<float>({3}, {2, 2, 2});
  EXPECT_THAT(run_binary(equal, a, b).span<bool>(), ElementsAre(false, true, false));
  EXPECT_THAT(run_binary(not_equal, a, b).span<bool>(), ElementsAre(true, false, true));
  EXPECT_THAT(run_binary(less, a, b).span<bool>(), ElementsAre(true, false, false));
  EXPECT_THAT(run_binary(less_equal, a, b).span<bool>(), ElementsAre(true, true, false));
  EXPECT_THAT(run_binary(greater, a, b).span<bool>(), ElementsAre(false, false, true));
  EXPECT_THAT(run_binary(greater_equal, a, b).span<bool>(), ElementsAre(false, true, true));
}

TEST(Compare, BroadcastsAndTakesOtherTypes) {
  const Tensor x =
      run_binary(less, Tensor::of<std::int64_t>({2, 1}, {1, 5}), Tensor::of<std::int64_t>({2}, {2, 6}));
  EXPECT_EQ(x.shape(), (Shape{2, 2}));
  EXPECT_THAT(x.span<bool>(), ElementsAre(true, true, false, true));
  EXPECT_TRUE(run_binary(greater, Tensor::scalar<std::uint8_t>(200), Tensor::scalar<std::uint8_t>(100))
                  .value<bool>());
  EXPECT_TRUE(run_binary(equal, Tensor::scalar(true), Tensor::scalar(true)).value<bool>());
}

TEST(Compare, NanEqualsNothing) {
  const Tensor nan = Tensor::scalar(std::nan(""));
  EXPECT_FALSE(run_binary(equal, nan, nan).value<bool>());
  EXPECT_TRUE(run_binary(not_equal, nan, nan).value<bool>());
}

TEST(Compare, JoinsTruthValues) {
  const Tensor a = Tensor::of<bool>({2, 1}, {false, true}), b = Tensor::of<bool>({2}, {false, true});
  EXPECT_THAT(run_binary(logical_and, a, b).span<bool>(), ElementsAre(false, false, false, true));
  EXPECT_THAT(run_binary(logical_or, a, b).span<bool>(), ElementsAre(false, true, true, true));
  EXPECT_THAT(run_op({a}, [](Scope& s, const Outputs& x) { return logical_not(s, x[0]); }).span<bool>(),
              ElementsAre(true, false));
}

TEST(Compare, BroadcastsShapes) {
  const auto shape_of = [](Binary op, DType dtype) {
    expect_shape({{{-1, 1}, dtype}, {{3}, dtype}},
                 [=](Scope& s, const Outputs& x) { return op(s, x[0], x[1]); }, {-1, 3});
  };
  for (const Binary op : {equal, not_equal, less, less_equal, greater, greater_equal})
    shape_of(op, DType::i32);
  for (const Binary op : {logical_and, logical_or}) shape_of(op, DType::boolean);
  expect_shape({{{-1, 3}, DType::boolean}}, [](Scope& s, const Outputs& x) { return logical_not(s, x[0]); },
               {-1, 3});
}

TEST(Select, TakesFromEitherSide) {
  const Tensor a = Tensor::of<std::int32_t>({2, 2}, {1, 2, 3, 4}),
               b = Tensor::of<std::int32_t>({2, 2}, {5, 6, 7, 8});
  const auto by = [&](const Tensor& condition) {
    return run_op({condition, a, b}, [](Scope& s, const Outputs& x) { return select(s, x[0], x[1], x[2]); });
  };
  EXPECT_THAT(by(Tensor::of<bool>({2, 2}, {true, false, false, true})).span<std::int32_t>(),
              ElementsAre(1, 6, 7, 4));
  EXPECT_THAT(by(Tensor::of<bool>({2, 1}, {true, false})).span<std::int32_t>(), ElementsAre(1, 2, 7, 8));
  EXPECT_THAT(by(Tensor::scalar(false)).span<std::int32_t>(), ElementsAre(5, 6, 7, 8));
}

TEST(Select, RefusesConditionThatIsLargerThanTheValues) {
  EXPECT_THAT(
      [] {
        run_op({Tensor(DType::boolean, {2}), Tensor::scalar(1.0f), Tensor::scalar(2.0f)},
               [](Scope& s, const Outputs& x) { return select(s, x[0], x[1], x[2]); });
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("the condition is [2]")));
}

TEST(Select, HasTheShapeThatEitherValueKnows) {
  expect_shape({{{3}, DType::boolean}, {-1, 3}, {2, -1}},
               [](Scope& s, const Outputs& x) { return select(s, x[0], x[1], x[2]); }, {2, 3});
}

TEST(Select, GradientGoesToTheSideThatWasTaken) {
  expect_gradients({test_numbers({5}), test_numbers({5}, 2)},
                   [](Scope& s, const Outputs& x) { return select(s, less(s, x[0], x[1]), x[0], x[1]); });
}

}  // namespace
}  // namespace kolo
