// The optimizers' rules, over many variables in one launch. See launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>
#include <kolo/core/kernels/cuda/launch_rows.h>

namespace kolo::cuda {

inline constexpr int kMaxUpdateSlots = 3;
inline constexpr int kMaxUpdateScalars = 7;
/// So many make the arguments of a kernel, which CUDA limits to 4 KiB.
inline constexpr int kMaxUpdateRanges = 64;

/// `elements` of a variable, of its slots in the order in which the rule names them, and of its gradient.
struct UpdateRange {
  float* variable;
  float* slots[kMaxUpdateSlots];
  const float* gradient;
  std::int64_t elements;
};

/// Applies the rule to all ranges, which do not overlap.
struct UpdateArguments {
  int rule;                                 // its number in elements::UpdateRules
  const float* scalars[kMaxUpdateScalars];  // a number each, in device memory; the rule's, in its order
  int ranges;                               // 1 … kMaxUpdateRanges
  UpdateRange range[kMaxUpdateRanges];
};
cudaError_t launch_update(cudaStream_t stream, const UpdateArguments& arguments);

/// Applies the rule to those rows of a variable [rows, inner] that are named, each once: the gradients
/// [count, inner] of a row that is named twice are added in the order in which they stand.
struct RowUpdateArguments {
  int rule;  // its number in elements::UpdateRules
  const float* scalars[kMaxUpdateScalars];
  float* variable;
  float* slots[kMaxUpdateSlots];
  const float* gradients;
  Rows rows;  // outer is 1
};
cudaError_t launch_row_update(cudaStream_t stream, const RowUpdateArguments& arguments);

}  // namespace kolo::cuda
