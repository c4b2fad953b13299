// What the tests of convolutions on images in blocks compare: numbers in blocks, and sums in f64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include <kolo/core/tensor/tensor.h>

#include "tests/core/kernels/cpu/random_numbers.h"

namespace kolo::detail {

// Images in blocks.
class Planes {
 public:
  Planes(std::int64_t block, std::int64_t images, std::int64_t channels, std::int64_t rows, std::int64_t cols)
      : block_(block),
        channels_(channels),
        rows_(rows),
        cols_(cols),
        tensor_(DType::f32, {images, channels, rows, cols}) {}
  Planes(std::int64_t block, std::int64_t images, std::int64_t channels, std::int64_t rows, std::int64_t cols,
         std::uint32_t seed)
      : Planes(block, images, channels, rows, cols) {
    tensor_ = random_numbers(tensor_.shape(), seed);
  }
  float* data() const { return tensor_.data<float>(); }
  std::int64_t elements() const { return tensor_.elements(); }
  // 0 outside of the image.
  float at(std::int64_t n, std::int64_t c, std::int64_t row, std::int64_t col) const {
    if (row < 0 || col < 0 || row >= rows_ || col >= cols_) return 0;
    return data()[index(n, c, row, col)];
  }
  float& operator()(std::int64_t n, std::int64_t c, std::int64_t row, std::int64_t col) {
    return data()[index(n, c, row, col)];
  }

 private:
  std::int64_t index(std::int64_t n, std::int64_t c, std::int64_t row, std::int64_t col) const {
    return (((n * channels_ + c / block_ * block_) * rows_ + row * block_) * cols_) + col * block_ +
           c % block_;
  }
  std::int64_t block_, channels_, rows_, cols_;
  Tensor tensor_;
};

// Scratch memory in which every number is a NaN.
inline Tensor scratch(std::size_t bytes) {
  Tensor made(DType::f32, {static_cast<std::int64_t>(bytes / sizeof(float))});
  std::fill_n(made.data<float>(), made.elements(), std::numeric_limits<float>::quiet_NaN());
  return made;
}

// Compares with the sums in f64, by the root of the mean of squares: every `step`-th of all numbers.
class Comparison {
 public:
  explicit Comparison(std::int64_t elements) : step_(std::max<std::int64_t>(1, elements / 1000)) {}
  // value(): of this number; called for some.
  template <typename Value>
  void add(float got, const Value& value) {
    if (next_++ % step_ != 0) return;
    const double right = value();
    errors_ += (got - right) * (got - right), squares_ += right * right;
  }
  double error() const { return std::sqrt(errors_ / squares_); }

 private:
  std::int64_t step_, next_ = 0;
  double errors_ = 0, squares_ = 0;
};

/// Holds a convolution's results and its images' gradient against the sums in f64. In: has shape, x, dy,
/// weights, result(n, o, row, col) and image_gradient(n, c, row, col).
template <typename In>
void expect_results(const In& in, double bound) {
  const auto& c = in.shape;
  Planes y(c.block(), c.images, c.outs, c.rows.outputs, c.cols.outputs);
  c.results(in.x.data(), in.weights.template data<float>(), y.data(),
            scratch(c.results_scratch_bytes()).template data<float>());
  Comparison with_f64(y.elements());
  for (std::int64_t n = 0; n < c.images; ++n)
    for (std::int64_t o = 0; o < c.outs; ++o)
      for (std::int64_t row = 0; row < c.rows.outputs; ++row)
        for (std::int64_t col = 0; col < c.cols.outputs; ++col)
          with_f64.add(y(n, o, row, col), [&] { return in.result(n, o, row, col); });
  EXPECT_LT(with_f64.error(), bound);
}
template <typename In>
void expect_image_gradient(const In& in, double bound) {
  const auto& c = in.shape;
  Planes dx(c.block(), c.images, c.channels, c.rows.size, c.cols.size);
  c.image_gradient(in.weights.template data<float>(), in.dy.data(), dx.data(),
                   scratch(c.image_gradient_scratch_bytes()).template data<float>());
  Comparison with_f64(dx.elements());
  for (std::int64_t n = 0; n < c.images; ++n)
    for (std::int64_t i = 0; i < c.channels; ++i)
      for (std::int64_t row = 0; row < c.rows.size; ++row)
        for (std::int64_t col = 0; col < c.cols.size; ++col)
          with_f64.add(dx(n, i, row, col), [&] { return in.image_gradient(n, i, row, col); });
  EXPECT_LT(with_f64.error(), bound);
}

}  // namespace kolo::detail
