// Kernels that make one number of whole tensors. What is added to what follows from the sizes alone. See
// launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>
#include <kolo/core/kernels/elements/bad_value.h>

namespace kolo::cuda {

/// Of an element: x², or x · 0, which is 0 exactly where x is finite, else NaN.
enum class Term { square, times_zero };

/// partial[part] = the sum of the terms of that part of x, which is cut into `parts` runs of equal length,
/// the last ones perhaps shorter or empty. f32, f16, bf16.
struct TermsArguments {
  Term term;
  ElementType type;
  const void* x;
  double* partial;
  std::int64_t elements;
  std::int64_t parts;
};
cudaError_t launch_terms(cudaStream_t stream, const TermsArguments& arguments);

/// Of the sum of the partial sums: √ and half of it, f32; whether it is 0, boolean.
enum class Total { root, half, is_zero };

struct TotalArguments {
  Total total;
  const double* partial;
  void* y;  // one element
  std::int64_t parts;
};
cudaError_t launch_total(cudaStream_t stream, const TotalArguments& arguments);

/// y = x; the first NaN and the first infinity are noted. y may be x.
struct CheckNumericsArguments {
  const float* x;
  float* y;
  std::int64_t elements;
  elements::BadValue* nan;
  elements::BadValue* infinity;
};
cudaError_t launch_check_numerics(cudaStream_t stream, const CheckNumericsArguments& arguments);

}  // namespace kolo::cuda
