#include <kolo/collectives/schedule/step_state.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/parse_number.h>

namespace kolo::detail {
namespace {

template <typename T>
void write_as(std::byte* to, const StepFlags& flags) {
  T* const elements = reinterpret_cast<T*>(to);
  elements[0] = T(flags.stop ? 1.0f : 0.0f);
  elements[1] = T(flags.end_of_data ? 1.0f : 0.0f);
  elements[2] = T(flags.failed ? 1.0f : 0.0f);
  elements[3] = T(flags.save ? 1.0f : 0.0f);
}

template <typename T>
StepFlags read_as(const std::byte* from) {
  const T* const elements = reinterpret_cast<const T*>(from);
  const auto raised = [&](int i) { return static_cast<float>(elements[i]) != 0.0f; };
  return {.stop = raised(0), .end_of_data = raised(1), .failed = raised(2), .save = raised(3)};
}

}  // namespace

void write_flags(DType dtype, std::byte* to, const StepFlags& flags) {
  switch (dtype) {
    case DType::f32: return write_as<float>(to, flags);
    case DType::f64: return write_as<double>(to, flags);
    case DType::f16: return write_as<Half>(to, flags);
    case DType::bf16: return write_as<BFloat16>(to, flags);
    default: throw InternalError("a bucket of {} has no flags", dtype);
  }
}

StepFlags read_flags(DType dtype, const std::byte* from) {
  switch (dtype) {
    case DType::f32: return read_as<float>(from);
    case DType::f64: return read_as<double>(from);
    case DType::f16: return read_as<Half>(from);
    case DType::bf16: return read_as<BFloat16>(from);
    default: throw InternalError("a bucket of {} has no flags", dtype);
  }
}

StepState::StepState(int buckets, std::vector<int> ranks) : ranks_(std::move(ranks)), slots_(buckets) {}

void StepState::set_step(std::int64_t step) {
  MutexLock lock(mutex_);
  step_ = step;
  step_is_set_ = true;
}

void StepState::begin() {
  MutexLock lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  begin_locked();
}

bool StepState::begin_unless_broken() {
  MutexLock lock(mutex_);
  if (broken_) return false;
  begin_locked();
  return true;
}

void StepState::begin_locked() {
  // A step of which this rank has submitted nothing took place without the others: it is not counted.
  const bool first_or_shared =
      !begun_ || slots_.empty() ||
      std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.submitted; });
  if (begun_ && !void_ && first_or_shared)
    for (std::size_t b = 0; b < slots_.size(); ++b)
      if (!slots_[b].over)
        throw FailedPreconditionError(
            "step {} cannot begin: bucket {} of the step before is still to be reduced", step_ + 1, b);
  // Buckets of a void step end without a message, but the thread that reduces must have had its turn.
  for (auto& slot : slots_)
    while (slot.queued && !slot.over) changed_.wait(mutex_);
  for (auto& slot : slots_) slot.submitted = slot.queued = slot.over = false;
  next_ = 0;
  begun_ = true;
  begun_at_ = std::chrono::steady_clock::now();
  if (first_or_shared) ++begun_steps_;
  if (!std::exchange(step_is_set_, false) && first_or_shared) ++step_;
  void_ = nullptr;
  sent_ = {};
  coming_ = {};
  save_coming_ = false;
  if (slots_.empty()) {  // nothing that flags could travel with: each rank for itself
    verdict_ = {.stop = std::exchange(raised_.stop, false),
                .end_of_data = std::exchange(raised_.end_of_data, false)};
  }
}

void StepState::end(int optional) {
  MutexLock lock(mutex_);
  if (!begun_ || error_locked()) return;
  const auto left_out = [](const Slot& slot) { return !slot.submitted && !slot.over; };
  const auto first = slots_.begin() + optional;
  if (optional == 0 || std::none_of(first, slots_.end(), left_out)) return;
  const auto is_over = [](const Slot& slot) { return slot.over; };
  const auto may_end = [&](const Slot& slot) { return slot.over || left_out(slot); };
  if (!std::all_of(slots_.begin(), first, is_over) || !std::all_of(first, slots_.end(), may_end)) return;
  for (auto slot = first; slot != slots_.end(); ++slot) slot->over = true;
  verdict_ = coming_;
  save_ = save_coming_;
  changed_.notify_all();
}

bool StepState::is_broken() const {
  MutexLock lock(mutex_);
  return broken_ != nullptr;
}

std::chrono::steady_clock::time_point StepState::begun_at() const {
  MutexLock lock(mutex_);
  return begun_at_;
}

bool StepState::is_void_since(std::chrono::steady_clock::time_point time) const {
  MutexLock lock(mutex_);
  return void_ != nullptr && void_at_ >= time;
}

bool StepState::is_under_way() const {
  MutexLock lock(mutex_);
  if (!begun_ || void_ || broken_) return false;
  for (const auto& slot : slots_)
    if (!slot.over) return true;
  return false;
}

std::exception_ptr StepState::error_locked() const { return broken_ ? broken_ : void_; }

StepState::Submitted StepState::queue_next() {
  Submitted result{.first = next_, .end = next_, .error = nullptr};
  for (; next_ < static_cast<int>(slots_.size()) && slots_[next_].submitted; ++next_)
    slots_[next_].queued = true;
  result.end = next_;
  return result;
}

StepState::Submitted StepState::submit(int bucket, SlotDone& done) {
  MutexLock lock(mutex_);
  Slot& slot = slots_.at(bucket);
  if (const auto error = error_locked()) return {.error = error};
  if (begun_ && slot.submitted && raised_.failed)
    return {.error =
                std::make_exception_ptr(AbortedError("this rank failed in step {}: {}", step_, failure_))};
  if (!begun_ || slot.submitted)
    throw InternalError("bucket {} of step {} was submitted {}", bucket, step_,
                        begun_ ? "twice" : "before the step began");
  slot.submitted = true;
  slot.done = std::move(done);
  return queue_next();
}

StepState::Submitted StepState::submit_missing() {
  MutexLock lock(mutex_);
  if (const auto error = error_locked()) return {.error = error};
  for (auto& slot : slots_) {
    if (!slot.submitted) slot.done = nullptr;
    slot.submitted = true;
  }
  return queue_next();
}

std::int64_t StepState::ticket(int bucket) const {
  MutexLock lock(mutex_);
  return begun_steps_ * static_cast<std::int64_t>(slots_.size()) + bucket;
}

void StepState::raise_stop() {
  MutexLock lock(mutex_);
  raised_.stop = true;
}

void StepState::raise_save() {
  MutexLock lock(mutex_);
  raised_.save = true;
}

bool StepState::take_save() {
  MutexLock lock(mutex_);
  raised_.save = false;
  return std::exchange(save_, false);
}

bool StepState::is_save_pending() const {
  MutexLock lock(mutex_);
  return save_;
}

void StepState::raise_end_of_data() {
  MutexLock lock(mutex_);
  raised_.end_of_data = true;
}

bool StepState::raise_end_of_data_in_step() {
  MutexLock lock(mutex_);
  if (!begun_ || slots_.empty() || next_ > 0) return false;
  raised_.end_of_data = true;
  return true;
}

void StepState::raise_failure(const std::string& text) {
  MutexLock lock(mutex_);
  raised_.failed = true;
  failure_ = text;
}

bool StepState::wait_until(std::chrono::steady_clock::time_point deadline) const {
  MutexLock lock(mutex_);
  for (;;) {
    bool all_over = true;
    for (const auto& slot : slots_) all_over = all_over && slot.over;
    if (all_over || error_locked()) return true;
    if (!changed_.wait_until(mutex_, deadline) && std::chrono::steady_clock::now() >= deadline) return false;
  }
}

std::exception_ptr StepState::error() const {
  MutexLock lock(mutex_);
  return error_locked();
}

void StepState::break_off(std::exception_ptr error) {
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

bool StepState::begin_bucket(int bucket, StepFlags& flags) {
  MutexLock lock(mutex_);
  slots_[bucket].timing.start = std::chrono::steady_clock::now();
  if (void_ || broken_) return false;
  flags = raised_;
  if (bucket != 0) flags.stop = flags.save = false;
  // The end of data belongs to the step that it began; a failure is final.
  raised_.stop = raised_.stop && bucket != 0;
  raised_.save = raised_.save && bucket != 0;
  raised_.end_of_data = false;
  sent_.end_of_data = sent_.end_of_data || flags.end_of_data;
  sent_.failed = sent_.failed || flags.failed;
  return true;
}

void StepState::received(int bucket, const StepFlags& flags) {
  MutexLock lock(mutex_);
  if (bucket == 0) {
    coming_.stop = flags.stop;
    save_coming_ = flags.save;
  }
  if (flags.is_void()) ++exchanges_;
}

// "" from a rank that raised nothing, "end" at the end of data, "failed <step> <text>" after a failure.
std::string StepState::own_reason() const {
  MutexLock lock(mutex_);
  if (sent_.failed) return fmt::format("failed {} {}", step_, failure_);
  return sent_.end_of_data ? "end" : "";
}

void StepState::set_reasons(std::span<const std::string> reasons) {
  MutexLock lock(mutex_);
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const int rank = ranks_.empty() ? static_cast<int>(i) : ranks_.at(i);
    const std::string& reason = reasons[i];
    if (reason.rfind("failed ", 0) == 0 && !broken_) {
      const auto space = reason.find(' ', 7);
      broken_ = std::make_exception_ptr(AbortedError("rank {} failed in step {}: {}", rank,
                                                     reason.substr(7, space - 7), reason.substr(space + 1)));
    } else if (reason == "end" && !void_) {
      void_ = std::make_exception_ptr(OutOfRangeError("end of data on rank {}", rank));
      void_at_ = std::chrono::steady_clock::now();
      coming_.end_of_data = true;
    }
  }
  if (!void_ && !broken_)
    broken_ = std::make_exception_ptr(InternalError("step {} is void without a reason", step_));
  // Who sees the error sees what it means.
  verdict_ = coming_;
}

void StepState::finish_bucket(int bucket, std::exception_ptr error) {
  SlotDone done;
  std::vector<SlotDone> void_too;  // the ones that wait for an earlier bucket, which will not come
  {
    MutexLock lock(mutex_);
    if (error && !broken_) broken_ = error;
    error = error_locked();
    Slot& finished = slots_[bucket];
    finished.over = true;
    finished.timing.end = std::chrono::steady_clock::now();
    done = std::move(finished.done);
    for (auto& slot : slots_)
      if (error && slot.submitted && !slot.queued && !slot.over) {
        slot.over = true;
        void_too.push_back(std::move(slot.done));
      }
    if (error || bucket + 1 == static_cast<int>(slots_.size())) {
      verdict_ = coming_;
      save_ = save_coming_ && !error;
    }
    changed_.notify_all();
  }
  if (done) done(error);
  for (const auto& call : void_too)
    if (call) call(error);
}

StepVerdict StepState::last_verdict() const {
  MutexLock lock(mutex_);
  return verdict_;
}

std::vector<SlotTiming> StepState::timings() const {
  MutexLock lock(mutex_);
  std::vector<SlotTiming> timings;
  for (const auto& slot : slots_) timings.push_back(slot.timing);
  return timings;
}

std::int64_t StepState::exchanges() const {
  MutexLock lock(mutex_);
  return exchanges_;
}

}  // namespace kolo::detail
