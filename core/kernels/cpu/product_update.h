// Updates of large matrices with gradients that are products of few rows. The gradient is made part by part,
// and each part is used while it is in the cache: no memory holds all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <kolo/core/kernels/cpu/product_sum.h>
#include <kolo/core/kernels/cpu/thin_gemm.h>
#include <kolo/core/kernels/cpu/update_rules.h>

namespace kolo::detail {

/// Of one variable [inputs, outputs], with the sum of `factors` such products.
class ProductUpdate {
 public:
  /// shape: of each product. All their rows together are what ThinGemm takes.
  ProductUpdate(ThinGemm shape, int factors, int threads);
  std::size_t scratch_bytes() const;
  /// variable: all of it, with its slots and what the sum is divided by. scratch: aligned to 64 bytes.
  void run(const UpdateRule<float>& rule, const UpdatedRange<float>& variable,
           std::span<const GradientFactors> factors, float* scratch) const;

 private:
  std::int64_t all_rows() const { return shape_.rows * factors_; }
  std::int64_t floats_of_all_dy() const { return factors_ > 1 ? all_rows() * shape_.outputs : 0; }
  std::int64_t floats_of_thread() const;
  void make_part(std::span<const GradientFactors> factors, const float* all_dy, std::int64_t first,
                 std::int64_t rows, float* gradient) const;

  ThinGemm shape_;
  std::int64_t factors_;
  std::int64_t threads_;
  std::int64_t part_;  // rows of the gradient that are made at a time
};

}  // namespace kolo::detail
