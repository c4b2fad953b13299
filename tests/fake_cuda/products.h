// The loops that most of what tests compute on a GPU that is not there is spent in. Compilers make vector
// instructions of them, since none names an order of a sum that they would have to keep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kolo::fake_cuda {

/// to[i] += from[i] · factor for `count` elements; the two do not overlap.
template <typename T>
void add_multiple(T* __restrict to, const T* __restrict from, T factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i] * factor;
}

/// The sum of x[i] · y[i] for `count` elements, in sixteen parts.
template <typename T>
T dot(const T* x, const T* y, std::int64_t count) {
  constexpr std::int64_t kParts = 16;
  T parts[kParts] = {};
  std::int64_t i = 0;
  for (; i + kParts <= count; i += kParts)
    for (std::int64_t part = 0; part < kParts; ++part) parts[part] += x[i + part] * y[i + part];
  T sum = 0;
  for (const T part : parts) sum += part;
  for (; i < count; ++i) sum += x[i] * y[i];
  return sum;
}

/// A matrix of a product. The elements of a line, which is a row or a column, lie side by side.
struct Lines {
  const float* first;
  std::int64_t step;  // from a line to the next
  bool are_columns = false;
};

/// The product of a [rows x inner], whose lines are rows, and b [inner x cols]. keep(row, sums) is given each
/// row of the product once.
template <typename Keep>
void multiply_rows(const Lines& a, const Lines& b, std::int64_t rows, std::int64_t inner, std::int64_t cols,
                   const Keep& keep) {
  constexpr std::int64_t kTile = 16;  // rows for which b is read once: it is the larger one
  std::vector<float> sums(static_cast<std::size_t>(std::min(kTile, rows) * cols));
  for (std::int64_t first = 0; first < rows; first += kTile) {
    const std::int64_t count = std::min(kTile, rows - first);
    for (std::int64_t line = 0; line < (b.are_columns ? cols : inner); ++line)
      for (std::int64_t row = 0; row < count; ++row) {
        const float* const x = a.first + (first + row) * a.step;
        const float* const y = b.first + line * b.step;
        float* const to = sums.data() + row * cols;
        if (b.are_columns) to[line] = dot(x, y, inner);
        else if (line == 0)
          std::transform(y, y + cols, to, [factor = *x](float value) { return value * factor; });
        else add_multiple(to, y, x[line], cols);
      }
    for (std::int64_t row = 0; row < count; ++row) keep(first + row, sums.data() + row * cols);
  }
}

}  // namespace kolo::fake_cuda
