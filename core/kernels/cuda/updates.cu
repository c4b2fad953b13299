#include <kolo/core/kernels/cuda/launch_updates.h>
#include <kolo/core/kernels/elements/update_rules.h>
#include <kolo/core/kernels/cuda/grid.cuh>

namespace kolo::cuda {
namespace {

constexpr int kElementsPerBlock = 4 * kThreads;

// Which blocks work on which range.
struct Blocks {
  std::int64_t first[kMaxUpdateRanges + 1];  // of each range, and behind the last
};

template <typename Rule>
__global__ __launch_bounds__(kThreads) void update_kernel(const __grid_constant__ UpdateArguments arguments,
                                                          const __grid_constant__ Blocks blocks) {
  float scalars[kMaxUpdateScalars];
  for (int k = 0; k < kMaxUpdateScalars; ++k)
    scalars[k] = arguments.scalars[k] == nullptr ? 0 : *arguments.scalars[k];
  const auto rule = Rule::of(scalars);
  int begin = 0, end = arguments.ranges;
  while (end - begin > 1) {
    const int middle = (begin + end) / 2;
    (blocks.first[middle] <= blockIdx.x ? begin : end) = middle;
  }
  const UpdateRange& range = arguments.range[begin];
  const std::int64_t from = (blockIdx.x - blocks.first[begin]) * kElementsPerBlock + threadIdx.x;
  for (int k = 0; k < kElementsPerBlock / kThreads; ++k) {
    const std::int64_t i = from + k * kThreads;
    if (i >= range.elements) return;
    float variable = range.variable[i];
    float slots[kMaxUpdateSlots];
    for (int s = 0; s < Rule::kSlots; ++s) slots[s] = range.slots[s][i];
    elements::update(rule, variable, slots, range.gradient[i]);
    range.variable[i] = variable;
    for (int s = 0; s < Rule::kSlots; ++s) range.slots[s][i] = slots[s];
  }
}

template <typename Rule>
cudaError_t update(cudaStream_t stream, const UpdateArguments& arguments) {
  Blocks blocks = {};
  for (int i = 0; i < arguments.ranges; ++i)
    blocks.first[i + 1] =
        blocks.first[i] + (arguments.range[i].elements + kElementsPerBlock - 1) / kElementsPerBlock;
  const std::int64_t all = blocks.first[arguments.ranges];
  if (all == 0) return cudaSuccess;  // a grid of no blocks is an error
  update_kernel<Rule><<<static_cast<unsigned>(all), kThreads, 0, stream>>>(arguments, blocks);
  return launched();
}

}  // namespace

cudaError_t launch_update(cudaStream_t stream, const UpdateArguments& arguments) {
  if (arguments.ranges < 1 || arguments.ranges > kMaxUpdateRanges) return cudaErrorInvalidValue;
  cudaError_t result = cudaErrorInvalidValue;
  elements::UpdateRules<float>::at(
      arguments.rule, [&](auto rule) { result = update<typename decltype(rule)::type>(stream, arguments); });
  return result;
}

}  // namespace kolo::cuda
