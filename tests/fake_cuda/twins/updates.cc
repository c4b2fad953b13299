#include <kolo/core/kernels/cuda/launch_updates.h>

#include <array>
#include <vector>

#include <kolo/core/kernels/elements/update_rules.h>

#include "../launches.h"

namespace kolo::cuda {
namespace {

using fake_cuda::device_read;
using fake_cuda::device_write;

struct AdamWRule : elements::AdamRule<float> {
  static AdamRule of(const float* scalars) { return with_decay(scalars); }
};

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
        rule(range.variable[i], slots, range.gradient[i]);
        for (int s = 0; s < Rule::kSlots; ++s) range.slots[s][i] = slots[s];
      }
    }
  });
}

}  // namespace

cudaError_t launch_update(cudaStream_t stream, const UpdateArguments& arguments) {
  using namespace elements;
  if (arguments.ranges < 1 || arguments.ranges > kMaxUpdateRanges) return cudaErrorInvalidValue;
  switch (arguments.rule) {
    case UpdateRule::adadelta: return update<AdadeltaRule<float>>(stream, arguments);
    case UpdateRule::adagrad: return update<AdagradRule<float>>(stream, arguments);
    case UpdateRule::adam: return update<AdamRule<float>>(stream, arguments);
    case UpdateRule::adam_w: return update<AdamWRule>(stream, arguments);
    case UpdateRule::centered_rms_prop: return update<CenteredRmsPropRule<float>>(stream, arguments);
    case UpdateRule::ftrl: return update<FtrlRule<float>>(stream, arguments);
    case UpdateRule::gradient_descent: return update<GradientDescentRule<float>>(stream, arguments);
    case UpdateRule::lion: return update<LionRule<float>>(stream, arguments);
    case UpdateRule::momentum: return update<MomentumRule<float>>(stream, arguments);
    case UpdateRule::nesterov: return update<NesterovRule<float>>(stream, arguments);
    case UpdateRule::rms_prop: return update<RmsPropRule<float>>(stream, arguments);
  }
  return cudaErrorInvalidValue;
}

}  // namespace kolo::cuda
