#include <kolo/core/kernels/cuda/launch_updates.h>
#include <kolo/core/kernels/elements/update_rules.h>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

constexpr int kElementsPerBlock = 1024;

// A block for so many elements of a range.
template <typename Rule>
struct UpdateWork : UpdateArguments {
  std::int64_t first[kMaxUpdateRanges + 1];  // block of each range, and behind the last

  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t block) const {
    float given[kMaxUpdateScalars];
    for (int k = 0; k < kMaxUpdateScalars; ++k) given[k] = scalars[k] == nullptr ? 0 : *scalars[k];
    const auto by = Rule::of(given);
    int begin = 0, end = ranges;
    while (end - begin > 1) {
      const int middle = (begin + end) / 2;
      (first[middle] <= block ? begin : end) = middle;
    }
    const UpdateRange& of = range[begin];
    const std::int64_t from = (block - first[begin]) * kElementsPerBlock + team.lane();
    for (int k = 0; k < kElementsPerBlock / team.lanes(); ++k) {
      const std::int64_t i = from + k * team.lanes();
      if (i >= of.elements) return;
      float variable = of.variable[i];
      float slots[kMaxUpdateSlots];
      for (int s = 0; s < Rule::kSlots; ++s) slots[s] = of.slots[s][i];
      elements::update(by, variable, slots, of.gradient[i]);
      of.variable[i] = variable;
      for (int s = 0; s < Rule::kSlots; ++s) of.slots[s][i] = slots[s];
    }
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    for (const float*& scalar : scalars)
      if (scalar != nullptr) visit(scalar, 1);
    for (int r = 0; r < ranges; ++r) {
      UpdateRange& of = range[r];
      visit(of.variable, of.elements);
      for (int s = 0; s < Rule::kSlots; ++s) visit(of.slots[s], of.elements);
      visit(of.gradient, of.elements);
    }
  }
};

template <typename Rule>
cudaError_t update(cudaStream_t stream, const UpdateArguments& arguments) {
  UpdateWork<Rule> work = {arguments, {}};
  for (int i = 0; i < arguments.ranges; ++i)
    work.first[i + 1] =
        work.first[i] + (arguments.range[i].elements + kElementsPerBlock - 1) / kElementsPerBlock;
  return run_blocks("update", stream, work.first[arguments.ranges], work);
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
