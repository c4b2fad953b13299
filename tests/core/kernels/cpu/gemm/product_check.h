// What the tests of matrix products of our own share: operands, and the product in f64 to hold theirs
// against.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <kolo/core/tensor/tensor.h>

#include "tests/core/gradient_check.h"

namespace kolo::detail {

/// c [rows, cols] = op(a) · op(b), a and b of `test_numbers`. Product: a type with rows, inner, cols,
/// scratch_bytes() and run(a, b, c, scratch).
template <typename Product>
class ProductCheck {
 public:
  ProductCheck(const Product& shape, bool transpose_a, bool transpose_b)
      : a(numbers({shape.rows * shape.inner}, 1)),
        b(numbers({shape.inner * shape.cols}, 2)),
        shape_(shape),
        transpose_a_(transpose_a),
        transpose_b_(transpose_b) {}

  float& a_at(std::int64_t row, std::int64_t k) const { return a.data<float>()[a_index(row, k)]; }

  /// Also checks that nothing behind the product is written.
  std::vector<float> product() const {
    const auto elements = static_cast<std::size_t>(shape_.rows * shape_.cols);
    std::vector<float> c(elements + kBeyond, kUntouched);
    const Tensor scratch = Tensor::zeros(DType::u8, {static_cast<std::int64_t>(shape_.scratch_bytes())});
    shape_.run(a.data<float>(), b.data<float>(), c.data(), reinterpret_cast<float*>(scratch.raw()));
    for (std::size_t i = elements; i < c.size(); ++i) EXPECT_EQ(c[i], kUntouched) << i;
    c.resize(elements);
    return c;
  }

  /// Each element within 1e-6 of the sum of its terms' magnitudes.
  void expect_sums_of_products() const {
    const std::vector<float> c = product();
    const std::int64_t a_step = transpose_a_ ? shape_.rows : 1, b_step = transpose_b_ ? 1 : shape_.cols;
    for (std::int64_t row = 0; row < shape_.rows; ++row)
      for (std::int64_t col = 0; col < shape_.cols; ++col) {
        const float* const left = a.data<float>() + a_index(row, 0);
        const float* const right = b.data<float>() + (transpose_b_ ? col * shape_.inner : col);
        double sum = 0, of_magnitudes = 0;
        for (std::int64_t k = 0; k < shape_.inner; ++k) {
          const double term = static_cast<double>(left[k * a_step]) * right[k * b_step];
          sum += term, of_magnitudes += std::abs(term);
        }
        ASSERT_NEAR(c[static_cast<std::size_t>(row * shape_.cols + col)], sum, 1e-6 * of_magnitudes)
            << row << ", " << col;
      }
  }

  Tensor a, b;

 private:
  static Tensor numbers(const Shape& shape, int salt) {
    return converted<double>(test_numbers(shape, salt), DType::f32);
  }
  std::int64_t a_index(std::int64_t row, std::int64_t k) const {
    return transpose_a_ ? k * shape_.rows + row : row * shape_.inner + k;
  }

  static constexpr std::size_t kBeyond = 64;
  static constexpr float kUntouched = -12345;
  Product shape_;
  bool transpose_a_, transpose_b_;
};

}  // namespace kolo::detail
