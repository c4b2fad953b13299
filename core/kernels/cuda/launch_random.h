// Random numbers: the CPU's, for the same seeds and position. See launch.h.
#pragma once

#include <span>

#include <kolo/core/kernels/cuda/launch.h>
#include <kolo/core/kernels/step_number.h>

namespace kolo::cuda {

/// Of a sequence of blocks of four numbers: that of a graph's op, from block `position` on, or from the one
/// that lies at `position_at`.
struct RandomSequence {
  std::uint64_t seed = 0;
  std::uint64_t op_seed = 0;
  std::uint64_t position = 0;
  const std::uint64_t* position_at = nullptr;
};

/// Each value to its place in the GPU's memory.
cudaError_t launch_numbers(cudaStream_t stream, std::span<const StepNumber> numbers);

enum class Distribution { uniform, normal, truncated_normal };

/// y[i] is number i % 4 of block i / 4.
struct RandomArguments {
  RandomSequence of;
  Distribution distribution;
  double first;   // the lowest number, or the mean
  double second;  // the limit, or the standard deviation
  float* y;
  std::int64_t elements;
};
cudaError_t launch_random(cudaStream_t stream, const RandomArguments& arguments);

/// y[i] = x[i] + number i % 4 of block i / 4, normal of mean 0. y may be x.
struct NoiseArguments {
  RandomSequence of;
  double stddev;
  const float* x;
  float* y;
  std::int64_t elements;
};
cudaError_t launch_noise(cudaStream_t stream, const NoiseArguments& arguments);

/// kept[i] = the word is not below first_kept; y[i] = kept ? x[i] · scale : 0. y may be x.
struct DropoutArguments {
  RandomSequence of;
  std::uint64_t first_kept;
  float scale;
  const float* x;
  float* y;
  std::uint8_t* kept;
  std::int64_t elements;
};
cudaError_t launch_dropout(cudaStream_t stream, const DropoutArguments& arguments);

/// dx[i] = kept[i] ? dy[i] · scale : 0. dx may be dy.
struct DropoutGradArguments {
  float scale;
  const float* dy;
  const std::uint8_t* kept;
  float* dx;
  std::int64_t elements;
};
cudaError_t launch_dropout_grad(cudaStream_t stream, const DropoutGradArguments& arguments);

}  // namespace kolo::cuda
