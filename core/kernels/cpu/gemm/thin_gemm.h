// Matrix products of few rows with a matrix that comes from memory, at the speed of memory: each of its
// elements is used once.
#pragma once

#include <cstdint>

namespace kolo::detail {

/// `rows` samples x [rows, inputs], weights w [inputs, outputs] and results y [rows, outputs], all row-major
/// f32. Each function computes a part of its result, so that several threads may share one.
struct ThinGemm {
  static constexpr std::int64_t kMostRows = 8, kColumns = 16;
  static constexpr std::int64_t kFewestWeights = 1024 * 1024;

  std::int64_t rows;
  std::int64_t inputs;
  std::int64_t outputs;

  /// 1 to kMostRows rows, outputs a multiple of kColumns.
  bool fits() const {
    return rows >= 1 && rows <= kMostRows && inputs > 0 && outputs > 0 && outputs % kColumns == 0;
  }

  /// Weights so large that they come from memory.
  bool is_worth_it() const { return fits() && inputs * outputs >= kFewestWeights; }

  // The order of the sums depends on the shape and the instruction set alone.

  /// Columns [first, end) of y = x · w, where both are multiples of kColumns.
  void results(const float* x, const float* w, float* y, std::int64_t first, std::int64_t end) const;
  /// Columns [first, end) of dx = dy · wᵀ.
  void input_gradient(const float* dy, const float* w, float* dx, std::int64_t first, std::int64_t end) const;
  /// Rows [first, end) of dw = xᵀ · dy. All are aligned to 64 bytes.
  void weight_gradient(const float* x, const float* dy, float* dw, std::int64_t first,
                       std::int64_t end) const;
};

}  // namespace kolo::detail
