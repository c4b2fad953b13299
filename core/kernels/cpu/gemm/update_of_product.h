// Updates of large matrices with gradients that are products of few rows. A gradient is made part by part,
// and each part is used while it is in the cache: no memory holds all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <kolo/core/kernels/cpu/gemm/product_sum.h>
#include <kolo/core/kernels/cpu/gemm/thin_gemm.h>
#include <kolo/core/kernels/cpu/loops/update_rules.h>

namespace kolo::detail {

/// Of one variable [inputs, outputs], with the sum of one to three such products: to the bit what the update
/// makes of these as its gradients.
class UpdateOfProduct {
 public:
  /// shape: of each product.
  UpdateOfProduct(ThinGemm shape, int factors, int threads);
  std::size_t scratch_bytes() const;
  /// variable: all of it, with its slots and what the sum is divided by. scratch: aligned to 64 bytes.
  void run(const UpdateRule<float>& rule, const UpdatedRange<float>& variable,
           std::span<const GradientFactors> factors, float* scratch) const;

 private:
  std::int64_t floats_of_thread() const;

  ThinGemm shape_;
  std::int64_t factors_;
  std::int64_t threads_;
  std::int64_t part_;  // rows of the gradients that are made at a time
};

}  // namespace kolo::detail
