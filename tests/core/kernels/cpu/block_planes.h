// What the tests of convolutions on images in blocks compare: numbers in blocks, and sums in f64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>

#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

inline Tensor random_numbers(const Shape& shape, std::uint32_t seed) {
  std::mt19937 random(seed);
  Tensor made(DType::f32, shape);
  for (float& x : made.span<float>()) x = static_cast<float>(random()) * 0x1p-31f - 1;
  return made;
}

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

}  // namespace kolo::detail
