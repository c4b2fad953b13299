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

Output build(Scope& s, const Outputs& in) { return softmax(s, in[0]); }

class Softmax : public testing::TestWithParam<Shape> {};

TEST_P(Softmax, IsTheShareOfEachExponential) {
  const Tensor x = test_numbers(GetParam());
  Tensor expected(DType::f64, GetParam());
  const std::int64_t cols = GetParam().dim(-1);
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    double sum = 0;
    for (std::int64_t j = i / cols * cols; j < (i / cols + 1) * cols; ++j)
      sum += std::exp(x.data<double>()[j]);
    expected.data<double>()[i] = std::exp(x.data<double>()[i]) / sum;
  }
  expect_both_types({x}, expected, 1e-6, build);
}

TEST_P(Softmax, HasTheGradientOfItsValues) { expect_gradients({test_numbers(GetParam())}, build); }
TEST_P(Softmax, HasTheSameGradientInBothTypes) {
  expect_same_gradients({test_numbers(GetParam())}, 1e-6, build);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Softmax,
                         testing::Values(Shape{7}, Shape{3, 10}, Shape{2, 3, 5}, Shape{4, 1}, Shape{1, 65},
                                         Shape{0, 3}));

TEST(SoftmaxOfLargeNumbers, DoesNotOverflow) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = Tensor::of<double>({1, 3}, {1000, 1000, -1000});
    expect_near(run_op({dtype == DType::f32 ? to_f32(x) : x}, build),
                Tensor::of<double>({1, 3}, {0.5, 0.5, 0}), 1e-6);
  }
}

TEST(SoftmaxErrors, RefusesAScalar) {
  Graph graph;
  Scope s(graph);
  EXPECT_THAT([&] { softmax(s, zeros(s, DType::f32, {})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("scalar")));
}

}  // namespace
}  // namespace kolo
