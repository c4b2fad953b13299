#include <kolo/core/kernels/cpu/gemm/thin_gemm.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <kolo/core/tensor/tensor.h>

#include "tests/core/kernels/cpu/random_numbers.h"

namespace kolo::detail {
namespace {

constexpr float kUntouched = -12345;
Tensor untouched(const Shape& shape) {
  Tensor made(DType::f32, shape);
  for (float& x : made.span<float>()) x = kUntouched;
  return made;
}

float at(const Tensor& matrix, std::int64_t row, std::int64_t col) {
  return matrix.data<float>()[row * matrix.shape().dim(1) + col];
}

// |value − Σ of the products| ≤ 1e-6 · Σ of their magnitudes.
template <typename Left, typename Right>
void expect_sum(float value, std::int64_t terms, const Left& left, const Right& right) {
  double sum = 0, magnitude = 0;
  for (std::int64_t i = 0; i < terms; ++i) {
    const double term = static_cast<double>(left(i)) * right(i);
    sum += term, magnitude += std::abs(term);
  }
  EXPECT_NEAR(value, sum, 1e-6 * magnitude);
}

class ThinProduct : public testing::TestWithParam<ThinGemm> {
 protected:
  const ThinGemm shape_ = GetParam();
  const Tensor x_ = random_numbers({shape_.rows, shape_.inputs}, 1),
               w_ = random_numbers({shape_.inputs, shape_.outputs}, 2),
               dy_ = random_numbers({shape_.rows, shape_.outputs}, 3);
};

TEST_P(ThinProduct, MakesTheColumnsOfTheResultsThatAreAskedFor) {
  ASSERT_TRUE(shape_.fits());
  const Tensor y = untouched({shape_.rows, shape_.outputs});
  const std::int64_t first = shape_.outputs > 16 ? 16 : 0;
  shape_.results(x_.data<float>(), w_.data<float>(), y.data<float>(), first, shape_.outputs);
  for (std::int64_t r = 0; r < shape_.rows; ++r)
    for (std::int64_t c = 0; c < shape_.outputs; ++c) {
      if (c < first) EXPECT_EQ(at(y, r, c), kUntouched);
      else
        expect_sum(
            at(y, r, c), shape_.inputs, [&](auto k) { return at(x_, r, k); },
            [&](auto k) { return at(w_, k, c); });
    }
}

TEST_P(ThinProduct, MakesTheColumnsOfTheInputsGradientThatAreAskedFor) {
  const Tensor dx = untouched({shape_.rows, shape_.inputs});
  const std::int64_t first = shape_.inputs > 1 ? 1 : 0;
  shape_.input_gradient(dy_.data<float>(), w_.data<float>(), dx.data<float>(), first, shape_.inputs);
  for (std::int64_t r = 0; r < shape_.rows; ++r)
    for (std::int64_t k = 0; k < shape_.inputs; ++k) {
      if (k < first) EXPECT_EQ(at(dx, r, k), kUntouched);
      else
        expect_sum(
            at(dx, r, k), shape_.outputs, [&](auto c) { return at(dy_, r, c); },
            [&](auto c) { return at(w_, k, c); });
    }
}

TEST_P(ThinProduct, MakesTheRowsOfTheWeightsGradientThatAreAskedFor) {
  const Tensor dw = untouched({shape_.inputs, shape_.outputs});
  const std::int64_t first = shape_.inputs > 1 ? 1 : 0;
  shape_.weight_gradient(x_.data<float>(), dy_.data<float>(), dw.data<float>(), first, shape_.inputs);
  for (std::int64_t k = 0; k < shape_.inputs; ++k)
    for (std::int64_t c = 0; c < shape_.outputs; ++c) {
      if (k < first) EXPECT_EQ(at(dw, k, c), kUntouched);
      else
        expect_sum(
            at(dw, k, c), shape_.rows, [&](auto r) { return at(x_, r, k); },
            [&](auto r) { return at(dy_, r, c); });
    }
}

// One row and as many as there may be, inputs that are no multiple of what goes side by side; weights so many
// that their gradient passes the caches.
INSTANTIATE_TEST_SUITE_P(Shapes, ThinProduct,
                         testing::Values(ThinGemm{1, 1, 16}, ThinGemm{2, 6, 48}, ThinGemm{3, 37, 16},
                                         ThinGemm{4, 101, 80}, ThinGemm{5, 4, 32}, ThinGemm{6, 67, 112},
                                         ThinGemm{7, 13, 64}, ThinGemm{8, 203, 96}, ThinGemm{2, 1027, 4096}),
                         [](const auto& info) {
                           return std::to_string(info.param.rows) + "x" + std::to_string(info.param.inputs) +
                                  "x" + std::to_string(info.param.outputs);
                         });

TEST(ThinGemmTest, TakesFewRowsAndWholeColumnsAlone) {
  EXPECT_TRUE((ThinGemm{8, 1, 16}).fits());
  EXPECT_FALSE((ThinGemm{9, 1, 16}).fits());
  EXPECT_FALSE((ThinGemm{0, 1, 16}).fits());
  EXPECT_FALSE((ThinGemm{1, 1, 17}).fits());
}

TEST(ThinGemmTest, KeepsNanAndInfinity) {
  const ThinGemm shape{2, 8, 16};
  Tensor x = random_numbers({2, 8}, 1);
  const Tensor w = random_numbers({8, 16}, 2), y = untouched({2, 16});
  x.data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  x.data<float>()[8 + 5] = std::numeric_limits<float>::infinity();
  shape.results(x.data<float>(), w.data<float>(), y.data<float>(), 0, 16);
  for (std::int64_t c = 0; c < 16; ++c) {
    EXPECT_TRUE(std::isnan(at(y, 0, c))) << c;
    EXPECT_TRUE(std::isinf(at(y, 1, c))) << c;
  }
}

}  // namespace
}  // namespace kolo::detail
