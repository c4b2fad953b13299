// What holds on each rank, so that the ranks need no names in their messages:
//
// 1. Slots have their turn in the order of their numbers, whatever order they are submitted in: those below
//    next_ are queued, no other is. A ticket is the number of the step and of the slot; a step of which this
//    rank submitted nothing took place without the others and has no number.
// 2. A slot goes from submitted to queued to over, each once a step. Whoever takes `done` out under mutex_
//    calls it, after mutex_ is free.
// 3. A step is void by what all ranks sent with one of its slots, so it is void from the same slot on
//    everywhere, and the slots behind it end without a message. A group that is broken stays so, and one rank
//    may know it before the others.
// 4. A step begins when no queued slot of the last one is left: then no thread reduces for that any more.
#include <kolo/collectives/schedule/step_slots.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo::detail {
StepSlots::StepSlots(int slots, std::vector<int> ranks) : slots_(slots), votes_(std::move(ranks)) {}

void StepSlots::set_number(int slots) {
  MutexLock lock(mutex_);
  slots_.resize(static_cast<std::size_t>(slots));
}

void StepSlots::set_step(std::int64_t step) {
  MutexLock lock(mutex_);
  step_ = step;
  step_is_set_ = true;
}

void StepSlots::begin() {
  MutexLock lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  begin_locked();
  inside_ = true;
}

bool StepSlots::begin_unless_broken() {
  MutexLock lock(mutex_);
  if (broken_) return false;
  begin_locked();
  return true;
}

void StepSlots::begin_locked() {
  // A step of which this rank has submitted nothing took place without the others: it is not counted.
  const bool first_or_shared =
      !begun_ || slots_.empty() ||
      std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.submitted; });
  if (begun_ && !void_ && first_or_shared)
    for (std::size_t b = 0; b < slots_.size(); ++b)
      if (!slots_[b].over)
        throw FailedPreconditionError(
            "step {} cannot begin: slot {} of the step before is still to have its turn", step_ + 1, b);
  // Buckets of a void step end without a message, but the thread that reduces must have had its turn.
  for (auto& slot : slots_)
    while (slot.queued && !slot.over) changed_.wait(mutex_);
  for (auto& slot : slots_) slot.submitted = slot.queued = slot.over = false;
  next_ = 0;
  read_ = false;
  begun_ = true;
  begun_at_ = std::chrono::steady_clock::now();
  if (first_or_shared) ++begun_steps_;
  if (!std::exchange(step_is_set_, false) && first_or_shared) ++step_;
  void_ = nullptr;
  votes_.begin_step();
  if (slots_.empty()) votes_.end_step_alone();
}

void StepSlots::end(int optional) {
  MutexLock lock(mutex_);
  inside_ = false;
  if (!begun_ || error_locked()) return;
  const auto left_out = [](const Slot& slot) { return !slot.submitted && !slot.over; };
  const auto first = slots_.begin() + optional;
  if (optional == 0 || std::none_of(first, slots_.end(), left_out)) return;
  const auto is_over = [](const Slot& slot) { return slot.over; };
  const auto may_end = [&](const Slot& slot) { return slot.over || left_out(slot); };
  if (!std::all_of(slots_.begin(), first, is_over) || !std::all_of(first, slots_.end(), may_end)) return;
  for (auto slot = first; slot != slots_.end(); ++slot) slot->over = true;
  votes_.end_step(/*error=*/false);
  changed_.notify_all();
}

bool StepSlots::is_inside() const {
  MutexLock lock(mutex_);
  return inside_;
}

bool StepSlots::is_broken() const {
  MutexLock lock(mutex_);
  return broken_ != nullptr;
}

std::chrono::steady_clock::time_point StepSlots::begun_at() const {
  MutexLock lock(mutex_);
  return begun_at_;
}

bool StepSlots::is_void_since(std::chrono::steady_clock::time_point time) const {
  MutexLock lock(mutex_);
  return void_ != nullptr && void_at_ >= time;
}

bool StepSlots::is_under_way() const {
  MutexLock lock(mutex_);
  if (!begun_ || void_ || broken_) return false;
  for (const auto& slot : slots_)
    if (!slot.over) return true;
  return false;
}

std::exception_ptr StepSlots::error_locked() const { return broken_ ? broken_ : void_; }

StepSlots::Submitted StepSlots::queue_next() {
  Submitted result{.first = next_, .end = next_, .error = nullptr};
  for (; next_ < static_cast<int>(slots_.size()) && slots_[next_].submitted; ++next_)
    slots_[next_].queued = true;
  result.end = next_;
  return result;
}

StepSlots::Submitted StepSlots::submit(int index, SlotDone& done) {
  MutexLock lock(mutex_);
  Slot& slot = slots_.at(index);
  if (const auto error = error_locked()) return {.error = error};
  if (begun_ && slot.submitted && votes_.has_raised(StepFlag::failed))
    return {.error = std::make_exception_ptr(
                AbortedError("this rank failed in step {}: {}", step_, votes_.failure()))};
  if (!begun_ || slot.submitted)
    throw InternalError("slot {} of step {} was submitted {}", index, step_,
                        begun_ ? "twice" : "before the step began");
  slot.submitted = true;
  slot.done = std::move(done);
  return queue_next();
}

StepSlots::Submitted StepSlots::submit_missing() {
  MutexLock lock(mutex_);
  if (const auto error = error_locked()) return {.error = error};
  for (auto& slot : slots_) {
    if (!slot.submitted) slot.done = nullptr;
    slot.submitted = true;
  }
  return queue_next();
}

std::int64_t StepSlots::ticket(int slot) const {
  MutexLock lock(mutex_);
  return begun_steps_ * (static_cast<std::int64_t>(slots_.size()) + 1) + slot;
}

std::int64_t StepSlots::step() const {
  MutexLock lock(mutex_);
  return step_;
}

void StepSlots::raise(StepFlag flag, const std::string& text) {
  MutexLock lock(mutex_);
  votes_.raise(flag, text);
}

void StepSlots::raise_sum(std::uint16_t sum) {
  MutexLock lock(mutex_);
  votes_.raise_sum(sum);
}

bool StepSlots::raise_end_of_data_in_step() {
  MutexLock lock(mutex_);
  if (!begun_ || slots_.empty() || next_ > 0) return false;
  votes_.raise(StepFlag::end_of_data);
  return true;
}

StepFlags StepSlots::take_outcome() {
  MutexLock lock(mutex_);
  return votes_.take_outcome();
}

StepFlags StepSlots::outcome() const {
  MutexLock lock(mutex_);
  return votes_.outcome();
}

bool StepSlots::wait_until(std::chrono::steady_clock::time_point deadline) const {
  MutexLock lock(mutex_);
  for (;;) {
    bool all_over = true;
    for (const auto& slot : slots_) all_over = all_over && slot.over;
    if (all_over || error_locked()) return true;
    if (!changed_.wait_until(mutex_, deadline) && std::chrono::steady_clock::now() >= deadline) return false;
  }
}

std::exception_ptr StepSlots::error() const {
  MutexLock lock(mutex_);
  return error_locked();
}

void StepSlots::break_off(std::exception_ptr error) {
  std::vector<SlotDone> waiting;
  {
    MutexLock lock(mutex_);
    if (!broken_) broken_ = error;
    error = broken_;
    for (auto& slot : slots_)
      if (slot.done) waiting.push_back(std::exchange(slot.done, nullptr));
    changed_.notify_all();
  }
  for (const auto& done : waiting) done(error);
}

bool StepSlots::begin_slot(int slot, StepFlags& flags) {
  MutexLock lock(mutex_);
  slots_[slot].timing.start = std::chrono::steady_clock::now();
  if (void_ || broken_) return false;
  flags = votes_.flags_for(slot);
  return true;
}

void StepSlots::received(int slot, const StepFlags& flags) {
  MutexLock lock(mutex_);
  votes_.received(slot, flags);
}

std::string StepSlots::own_reason() const {
  MutexLock lock(mutex_);
  return votes_.own_reason(step_);
}

void StepSlots::set_reasons(std::span<const std::string> reasons) {
  MutexLock lock(mutex_);
  const VoteBox::Reasons found = votes_.read_reasons(reasons, step_);
  if (found.failure && !broken_) broken_ = found.failure;
  if (!found.end_of_data || void_) return;
  void_ = found.end_of_data;
  void_at_ = std::chrono::steady_clock::now();
}

void StepSlots::finish_slot(int slot, std::exception_ptr error) {
  SlotDone done;
  std::vector<SlotDone> void_too;  // the ones that wait for an earlier bucket, which will not come
  {
    MutexLock lock(mutex_);
    if (error && !broken_) broken_ = error;
    error = error_locked();
    Slot& finished = slots_[slot];
    finished.over = true;
    finished.timing.end = std::chrono::steady_clock::now();
    done = std::move(finished.done);
    for (auto& other : slots_)
      if (error && other.submitted && !other.queued && !other.over) {
        other.over = true;
        void_too.push_back(std::move(other.done));
      }
    if (error || slot + 1 == static_cast<int>(slots_.size())) votes_.end_step(error != nullptr);
    changed_.notify_all();
  }
  if (done) done(error);
  for (const auto& call : void_too)
    if (call) call(error);
}

void StepSlots::set_read() {
  MutexLock lock(mutex_);
  read_ = true;
}

bool StepSlots::take_read_through() {
  MutexLock lock(mutex_);
  const bool over = !error_locked() &&
                    std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.over; });
  return over && std::exchange(read_, false);
}

std::vector<SlotTiming> StepSlots::timings() const {
  MutexLock lock(mutex_);
  std::vector<SlotTiming> timings;
  for (const auto& slot : slots_) timings.push_back(slot.timing);
  return timings;
}

std::int64_t StepSlots::exchanges() const {
  MutexLock lock(mutex_);
  return votes_.exchanges();
}

}  // namespace kolo::detail
