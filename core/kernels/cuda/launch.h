// How kernels of .cu files are started: plain functions that enqueue on a stream and return, here and in the
// other launch_….h. Between them and the classes of the .cc files nothing else passes; tests put others in
// their place. All memory lies on the device, aligned to its elements, unless something else is said; nothing
// is launched for no elements. Each returns what the launch did, cudaErrorInvalidValue for a type, an op or a
// size that it does not know.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include <kolo/core/kernels/elements/walk.h>

namespace kolo::cuda {

using elements::kMaxDims;
using elements::Walk;

/// Of one kernel. CUDA 12.1 takes more, but drivers of CUDA 12.0, which run what 12.9 has built, do not.
inline constexpr std::size_t kMostParameterBytes = 4096;

/// Whoever starts a kernel calls it.
void count_launch();

/// kolo's DType, but for strings; a boolean is a byte of 0 or 1.
enum class ElementType { f32, f64, i32, i64, boolean, u8, i8, f16, bf16 };

/// target[i] = value, whose bits are given: of 1, 2, 4 or 8 bytes each. Aligned to that.
struct FillArguments {
  void* target;
  std::uint64_t value_bits;
  int bytes_per_element;
  std::int64_t elements;
};
cudaError_t launch_fill(cudaStream_t stream, const FillArguments& arguments);

}  // namespace kolo::cuda
