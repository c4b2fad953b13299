#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/math.h>

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

TEST(Select, BroadcastsAllThree) {
  const Tensor y = run_op(
      {Tensor::of<bool>({2, 1}, {true, false}), Tensor::of<float>({3}, {1, 2, 3}), Tensor::scalar(9.0f)},
      [](Scope& s, const Outputs& x) { return where(s, x[0], x[1], x[2]); });
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_THAT(y.span<float>(), ElementsAre(1, 2, 3, 9, 9, 9));
}

TEST(Select, DoesNotDependOnThreads) {
  const Tensor a = test_numbers({100'000}), b = test_numbers({100'000}, 1);
  const auto choose = [&](int count) {
    const IntraOpThreads threads(count);
    return run_op({a, b},
                  [](Scope& s, const Outputs& x) { return select(s, less(s, x[0], x[1]), x[0], x[1]); });
  };
  const Tensor three = choose(3);
  for (std::int64_t i = 0; i < a.elements(); ++i)
    ASSERT_EQ(three.data<double>()[i], std::min(a.data<double>()[i], b.data<double>()[i])) << "element " << i;
}

TEST(Select, RefusesShapesThatCannotBeBroadcast) {
  EXPECT_THAT(
      [] {
        run_op({Tensor(DType::boolean, {2}), Tensor(DType::f32, {3}), Tensor::scalar(2.0f)},
               [](Scope& s, const Outputs& x) { return select(s, x[0], x[1], x[2]); });
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Incompatible shapes: [2] vs. [3]")));
}

TEST(Select, BroadcastsShapes) {
  expect_shape({{{2, 1}, DType::boolean}, {-1, 3}, {4, 1, 1}},
               [](Scope& s, const Outputs& x) { return select(s, x[0], x[1], x[2]); }, {4, 2, 3});
}

TEST(Select, GradientGoesToTheSideThatWasTaken) {
  expect_gradients({test_numbers({5}), test_numbers({5}, 2)},
                   [](Scope& s, const Outputs& x) { return select(s, less(s, x[0], x[1]), x[0], x[1]); });
}

TEST(Select, GradientOfWhatIsBroadcastIsSummed) {
  for (const bool known_shapes : {true, false})
    expect_gradients(
        {test_numbers({2, 1}), test_numbers({3}, 2)},
        [](Scope& s, const Outputs& x) {
          const Output condition = constant(s, Tensor::of<bool>({4, 1, 1}, {true, false, true, true}));
          return select(s, condition, x[0], x[1]);
        },
        {.known_shapes = known_shapes});
}

TEST(Predicates, TellNanInfinityAndNumbersApart) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto told = [](Output (*op)(const Scope&, Output), const Tensor& x) {
    return run_op({x}, [=](Scope& s, const Outputs& in) { return op(s, in[0]); });
  };
  const Tensor x = Tensor::of<float>({4}, {1, std::nanf(""), kInfinity, -kInfinity});
  EXPECT_THAT(told(is_nan, x).span<bool>(), ElementsAre(false, true, false, false));
  EXPECT_THAT(told(is_inf, x).span<bool>(), ElementsAre(false, false, true, true));
  EXPECT_THAT(told(is_finite, x).span<bool>(), ElementsAre(true, false, false, false));
  EXPECT_FALSE(told(is_finite, Tensor::scalar(std::nan(""))).value<bool>());
}

TEST(Predicates, HoldOverLongTensors) {
  Tensor x = Tensor::zeros(DType::f64, {100'001});
  x.data<double>()[100'000] = std::nan("");
  const IntraOpThreads threads(3);
  const Tensor y = run_op({x}, [](Scope& s, const Outputs& in) { return is_nan(s, in[0]); });
  for (std::int64_t i = 0; i < y.elements(); ++i)
    ASSERT_EQ(y.data<bool>()[i], i == 100'000) << "element " << i;
}

TEST(Predicates, KeepTheShape) {
  for (const auto op : {is_nan, is_inf, is_finite})
    expect_shape({{-1, 3}}, [=](Scope& s, const Outputs& x) { return op(s, x[0]); }, {-1, 3});
}

}  // namespace
}  // namespace kolo
