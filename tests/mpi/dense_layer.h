// A dense layer whose gradient is known, and differs from rank to rank: for the tests of what ranks share of
// it.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/core/tensor/tensor.h>
#include <tests/support/tensor_bytes.h>

namespace kolo {

// Whatever the order of sums is, it shows in the bits.
inline float number(std::int64_t i, int rank) {
  return 0.1f * static_cast<float>((i * 7 + rank * 5 + i / 11) % 9 - 4) / 3;
}

inline Tensor matrix(std::int64_t rows, std::int64_t cols, int rank) {
  Tensor t(DType::f32, {rows, cols});
  for (std::int64_t i = 0; i < rows * cols; ++i) t.data<float>()[i] = number(i, rank);
  return t;
}

// y = x · w for rows of each rank's own, where the loss is the sum of y · c: the gradient of w is xᵀ · c,
// whatever w is.
struct Layer {
  std::int64_t inputs, outputs;
  std::vector<std::int64_t> rows = {8};  // of rank r: rows[r % rows.size()]

  std::int64_t rows_of(int rank) const { return rows[static_cast<std::size_t>(rank) % rows.size()]; }
  std::int64_t own_rows() const { return rows_of(rank()); }
  // Element [i, j] of the average of all ranks', in double.
  double gradient(std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (int r = 0; r < size(); ++r)
      for (std::int64_t k = 0; k < rows_of(r); ++k)
        sum += static_cast<double>(number(k * inputs + i, r)) * number(k * outputs + j, r + 1);
    return sum / size();
  }
  // Calls check(element of [inputs, outputs], what the gradient is there) for some elements of all rows.
  template <typename Check>
  void for_some(const Check& check) const {
    for (std::int64_t i = 0; i < inputs; ++i)
      for (std::int64_t j = i % 53; j < outputs; j += 53) check(i * outputs + j, gradient(i, j));
  }
};

inline constexpr double kRate = 0.5;

}  // namespace kolo
