#include <kolo/core/kernels/cpu/packed_gemm.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <kolo/core/tensor/tensor.h>

#include "tests/core/gradient_check.h"

namespace kolo::detail {
namespace {

struct Operands {
  explicit Operands(const PackedGemm& shape)
      : a(numbers({shape.rows, shape.inner}, 1)), b(numbers({shape.inner, shape.cols}, 2)) {}

  static Tensor numbers(const Shape& shape, int salt) {
    return converted<double>(test_numbers(shape, salt), DType::f32);
  }
  // Also checks that nothing behind the product is written.
  std::vector<float> product(const PackedGemm& shape) const {
    const auto elements = static_cast<std::size_t>(shape.rows * shape.cols);
    std::vector<float> c(elements + kBeyond, kUntouched);
    const Tensor scratch = Tensor::zeros(DType::u8, {static_cast<std::int64_t>(shape.scratch_bytes())});
    shape.run(a.data<float>(), b.data<float>(), c.data(), reinterpret_cast<float*>(scratch.raw()));
    for (std::size_t i = elements; i < c.size(); ++i) EXPECT_EQ(c[i], kUntouched) << i;
    c.resize(elements);
    return c;
  }

  static constexpr std::size_t kBeyond = 64;
  static constexpr float kUntouched = -12345;
  Tensor a, b;
};

struct Sum {
  double value = 0, of_magnitudes = 0;
};
Sum exact(const PackedGemm& shape, const Operands& in, std::int64_t row, std::int64_t col) {
  const float *a = in.a.data<float>() + row * shape.inner, *b = in.b.data<float>();
  Sum sum;
  for (std::int64_t k = 0; k < shape.inner; ++k) {
    const double term =
        static_cast<double>(a[k]) * (shape.transpose_b ? b[col * shape.inner + k] : b[k * shape.cols + col]);
    sum.value += term, sum.of_magnitudes += std::abs(term);
  }
  return sum;
}

class PackedProduct : public testing::TestWithParam<PackedGemm> {};

TEST_P(PackedProduct, IsTheSumOfProducts) {
  const PackedGemm shape = GetParam();
  ASSERT_TRUE(shape.fits());
  const Operands in(shape);
  const std::vector<float> c = in.product(shape);
  for (std::int64_t row = 0; row < shape.rows; ++row)
    for (std::int64_t col = 0; col < shape.cols; ++col) {
      const Sum sum = exact(shape, in, row, col);
      ASSERT_NEAR(c[static_cast<std::size_t>(row * shape.cols + col)], sum.value, 1e-6 * sum.of_magnitudes)
          << row << ", " << col;
    }
}

// Inner dimensions: one, no multiple of what a loop takes at once, several blocks, more than are packed at
// once. Columns: the fewest, several strips with a rest.
INSTANTIATE_TEST_SUITE_P(Shapes, PackedProduct,
                         testing::Values(PackedGemm{256, 1, 32, false}, PackedGemm{256, 1, 32, true},
                                         PackedGemm{257, 65, 96, false}, PackedGemm{300, 67, 96, true},
                                         PackedGemm{270, 519, 64, false}, PackedGemm{261, 519, 64, true},
                                         PackedGemm{256, 1100, 544, false},
                                         PackedGemm{256, 1100, 544, true}));

TEST(PackedGemmTest, KeepsNanAndInfinityInTheirRows) {
  const PackedGemm shape{256, 40, 32, false};
  Operands in(shape);
  in.a.data<float>()[5 * 40 + 7] = std::numeric_limits<float>::quiet_NaN();
  in.a.data<float>()[6 * 40 + 7] = std::numeric_limits<float>::infinity();
  const std::vector<float> c = in.product(shape);
  for (std::size_t i = 0; i < c.size(); ++i) {
    const std::size_t row = i / 32;
    EXPECT_EQ(std::isnan(c[i]), row == 5) << i;
    EXPECT_EQ(std::isinf(c[i]), row == 6) << i;
  }
}

TEST(PackedGemmTest, GivesTheSameBitsEachTime) {
  const PackedGemm shape{256, 700, 96, true};
  const Operands in(shape);
  EXPECT_EQ(in.product(shape), in.product(shape));
}

TEST(PackedGemmTest, FitsManyRowsAndWholePanelsOfColumns) {
  EXPECT_TRUE((PackedGemm{256, 5, 32, false}.fits()));
  EXPECT_FALSE((PackedGemm{255, 5, 32, false}.fits()));
  EXPECT_FALSE((PackedGemm{256, 5, 33, false}.fits()));
  EXPECT_FALSE((PackedGemm{256, 5, 0, false}.fits()));
  EXPECT_FALSE((PackedGemm{256, 0, 32, false}.fits()));
}

}  // namespace
}  // namespace kolo::detail
