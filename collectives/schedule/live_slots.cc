#include <kolo/collectives/schedule/live_slots.h>

namespace kolo::detail {

void LiveSlots::add(const std::shared_ptr<StepSlots>& state, const ProcessSet& set) {
  MutexLock lock(mutex_);
  std::erase_if(known_, [](const auto& known) { return known.state.expired(); });
  known_.push_back({state, set});
}

LiveSlots& slots_of_process() {
  static LiveSlots states;
  return states;
}

}  // namespace kolo::detail
