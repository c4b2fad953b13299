// The schedules of this process, as far as one has to know of the others when a rank leaves a step.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <kolo/collectives/engine/process_set.h>
#include <kolo/collectives/schedule/step_slots.h>
#include <kolo/core/base/mutex.h>

namespace kolo::detail {

/// The schedules of this process that its ranks have compared. Any thread.
class LiveSlots {
 public:
  void add(const std::shared_ptr<StepSlots>& state, const ProcessSet& set) KOLO_EXCLUDES(mutex_);
  /// Of those that all ranks of `set` share.
  template <typename Predicate>
  bool any_other(const StepSlots& than, const ProcessSet& set, const Predicate& predicate) const
      KOLO_EXCLUDES(mutex_) {
    std::vector<std::shared_ptr<StepSlots>> others;
    {
      MutexLock lock(mutex_);
      for (const auto& known : known_)
        if (auto state = known.state.lock();
            state && state.get() != &than && (known.set == set || known.set == ProcessSet()))
          others.push_back(std::move(state));
    }
    return std::any_of(others.begin(), others.end(), [&](const auto& other) { return predicate(*other); });
  }

 private:
  struct Known {
    std::weak_ptr<StepSlots> state;
    ProcessSet set;
  };
  mutable Mutex mutex_;
  std::vector<Known> known_ KOLO_GUARDED_BY(mutex_);
};

LiveSlots& slots_of_process();

}  // namespace kolo::detail
