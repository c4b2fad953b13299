#include <gmock/gmock.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/softmax.h>

#include "tests/core/ops/compare_tensors.h"

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct Case {
  Shape shape;
  int axis;
};

class Softmax : public testing::TestWithParam<Case> {
 protected:
  static Output build(Scope& s, const Outputs& in) { return softmax(s, in[0], GetParam().axis); }
  static Output build_log(Scope& s, const Outputs& in) { return log_softmax(s, in[0], GetParam().axis); }

  // The softmax by its definition: elements that differ in the axis alone are `inner` apart.
  Tensor expected(bool logarithm) const {
    const auto [shape, axis] = GetParam();
    Tensor y(DType::f64, shape);
    const int at = axis < 0 ? axis + shape.rank() : axis;
    std::int64_t inner = 1;
    for (int i = at + 1; i < shape.rank(); ++i) inner *= shape.dim(i);
    const std::int64_t count = shape.dim(at);
    const double* x = x_.data<double>();
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      const std::int64_t first = i - i / inner % count * inner;
      double sum = 0;
      for (std::int64_t k = 0; k < count; ++k) sum += std::exp(x[first + k * inner]);
      y.data<double>()[i] = logarithm ? x[i] - std::log(sum) : std::exp(x[i]) / sum;
    }
    return y;
  }
  const Tensor x_ = test_numbers(GetParam().shape);
};

TEST_P(Softmax, IsTheShareOfEachExponential) { expect_both_types({x_}, expected(false), 1e-6, build); }
TEST_P(Softmax, HasTheGradientOfItsValues) { expect_gradients({x_}, build); }
TEST_P(Softmax, HasTheSameGradientInBothTypes) { expect_same_gradients({x_}, 1e-6, build); }

TEST_P(Softmax, HasItsLogarithm) { expect_both_types({x_}, expected(true), 2e-6, build_log); }
TEST_P(Softmax, HasTheGradientOfItsLogarithm) { expect_gradients({x_}, build_log); }
TEST_P(Softmax, HasTheSameGradientOfItsLogarithmInBothTypes) { expect_same_gradients({x_}, 2e-6, build_log); }

INSTANTIATE_TEST_SUITE_P(Shapes, Softmax,
                         testing::Values(Case{{7}, -1}, Case{{3, 10}, -1}, Case{{2, 3, 5}, -1},
                                         Case{{4, 1}, 1}, Case{{1, 65}, -1}, Case{{0, 3}, -1},
                                         Case{{3, 10}, 0}, Case{{2, 3, 5}, 1}, Case{{2, 3, 4, 5}, -3},
                                         Case{{0, 3}, 0}));

TEST(SoftmaxOfLargeNumbers, DoesNotOverflow) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = Tensor::of<double>({1, 3}, {1000, 1000, -1000});
    const Tensor y = run_op({dtype == DType::f32 ? to_f32(x) : x},
                            [](Scope& s, const Outputs& in) { return softmax(s, in[0]); });
    expect_near(y, Tensor::of<double>({1, 3}, {0.5, 0.5, 0}), 1e-6);
  }
}

TEST(LogSoftmaxOfLargeNumbers, KeepsWhatTheSoftmaxLoses) {
  const Tensor x = Tensor::of<double>({1, 2}, {1000, 0});
  expect_both_types({x}, Tensor::of<double>({1, 2}, {0, -1000}), 1e-6,
                    [](Scope& s, const Outputs& in) { return log_softmax(s, in[0]); });
}

TEST(SoftmaxErrors, RefusesAnAxisThatIsNotThere) {
  Graph graph;
  Scope s(graph);
  EXPECT_THAT(
      [&] {
        softmax(s, zeros(s, DType::f32, {2, 3}), 2);
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("axis is 2; it must be in [-2, 2)")));
}

TEST(SoftmaxErrors, RefusesAScalar) {
  Graph graph;
  Scope s(graph);
  EXPECT_THAT([&] { softmax(s, zeros(s, DType::f32, {})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("scalar")));
}

}  // namespace
}  // namespace kolo
