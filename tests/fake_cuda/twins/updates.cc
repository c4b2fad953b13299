#include <kolo/core/kernels/cuda/launch_updates.h>

#include <array>
#include <vector>

#include <kolo/core/kernels/elements/update_rules.h>

#include "../launches.h"

namespace kolo::cuda {
namespace {

using fake_cuda::device_read;
using fake_cuda::device_write;

template <typename Rule>
cudaError_t update(cudaStream_t stream, const UpdateArguments& arguments) {
  UpdateArguments found = arguments;  // with the host's addresses
  std::int64_t all = 0;
  for (int k = 0; k < kMaxUpdateScalars; ++k)
    if (arguments.scalars[k] != nullptr) found.scalars[k] = device_read<float>(arguments.scalars[k], 1);
  for (int r = 0; r < arguments.ranges; ++r) {
    UpdateRange& range = found.range[r];
    all += range.elements;
    range.variable = device_write<float>(range.variable, range.elements);
    for (int s = 0; s < Rule::kSlots; ++s)
      range.slots[s] = device_write<float>(range.slots[s], range.elements);
    range.gradient = device_read<float>(range.gradient, range.elements);
  }
  if (all == 0) return cudaSuccess;
  return fake_cuda::launch("update", stream, [found] {
    float scalars[kMaxUpdateScalars];
    for (int k = 0; k < kMaxUpdateScalars; ++k)
      scalars[k] = found.scalars[k] == nullptr ? 0 : *found.scalars[k];
    const auto rule = Rule::of(scalars);
    for (int r = 0; r < found.ranges; ++r) {
      const UpdateRange& range = found.range[r];
      for (std::int64_t i = 0; i < range.elements; ++i) {
        float slots[kMaxUpdateSlots] = {};
        for (int s = 0; s < Rule::kSlots; ++s) slots[s] = range.slots[s][i];
        elements::update(rule, range.variable[i], slots, range.gradient[i]);
        for (int s = 0; s < Rule::kSlots; ++s) range.slots[s][i] = slots[s];
      }
    }
  });
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
