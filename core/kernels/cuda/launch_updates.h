// The optimizers' rules, over many variables in one launch. See launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>
#include <kolo/core/kernels/elements/bad_value.h>

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

/// Applies the rule to those of `rows` rows of a variable that `indices` name, each once: the gradients
/// [count, width] of a row that is named twice are added in the order in which they stand. An index that
/// names no row is noted in `bad`, and left out.
struct RowUpdateArguments {
  int rule;  // its number in elements::UpdateRules
  const float* scalars[kMaxUpdateScalars];
  float* variable;
  float* slots[kMaxUpdateSlots];
  const float* gradients;
  const void* indices;
  ElementType index_type;  // i32 or i64
  std::int64_t count;
  std::int64_t rows;
  std::int64_t width;
  elements::BadValue* bad;
};
cudaError_t launch_row_update(cudaStream_t stream, const RowUpdateArguments& arguments);

}  // namespace kolo::cuda
