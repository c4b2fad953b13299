// What is known of a schedule's present step: which of its slots, buckets and gatherings of rows, were
// submitted and are over, and whether the step is void.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/schedule/vote_box.h>
#include <kolo/core/base/mutex.h>

namespace kolo::detail {

/// Called once for each submitted slot: nullptr, or why the step is void (OutOfRangeError for the end of
/// data, AbortedError for a failed rank) or the group broken (DeadlineExceededError, UnavailableError, …).
/// On the communication thread, or inside submit(): must be quick, must not throw, and must not be what
/// keeps the schedule alive.
using SlotDone = std::function<void(std::exception_ptr)>;

struct SlotTiming {
  std::chrono::steady_clock::time_point start;
  std::chrono::steady_clock::time_point end;
};

/// Any thread.
class StepSlots {
 public:
  /// ranks: the job's numbers of those that share the schedule; none: all ranks.
  explicit StepSlots(int slots, std::vector<int> ranks = {});

  /// Before the first step.
  void set_number(int slots);
  void set_step(std::int64_t step);
  /// Throws the group's error, or FailedPreconditionError where the step before was left half-way.
  void begin();
  /// The same, but false where begin() throws the group's error.
  bool begin_unless_broken();
  /// The step has ended on this rank. Where it reduced all that lies before slot `optional`, what it did not
  /// submit of the others is over without a message: all ranks leave out the same. A step that is void, or
  /// has something on its way, stays as it is.
  void end(int optional);
  /// From begin() to end(); a step that begin_unless_broken() has begun is none of the session's.
  bool is_inside() const;
  /// True if a step has begun of which some slot is not over, and that is not void.
  bool is_under_way() const;

  struct Submitted {
    int first = 0, end = 0;    // the slots whose turn it is now: none, one or several
    std::exception_ptr error;  // the step is void or the group broken; `done` was left to the caller
  };
  Submitted submit(int slot, SlotDone& done);
  /// All that this rank has not submitted, as they are: for a step that this rank is about to void. Who
  /// submits one of them later is told so.
  Submitted submit_missing();
  /// Grows from step to step and from slot to slot, in the same way on all ranks; of the number of slots: of
  /// the step's end.
  std::int64_t ticket(int slot) const;
  /// The number that errors name.
  std::int64_t step() const;

  void raise(StepFlag flag, const std::string& text = {});
  void raise_sum(std::uint16_t sum);
  /// For the step that has begun; false if some slot has left already.
  bool raise_end_of_data_in_step();
  /// What the ranks have learned with the last step that is over.
  StepFlags take_outcome();
  StepFlags outcome() const;
  /// Waits until the present step is over, void, or the group broken. False when the deadline passes first.
  bool wait_until(std::chrono::steady_clock::time_point deadline) const;
  /// Why the step is void or the group broken; nullptr if it is neither.
  std::exception_ptr error() const;
  bool is_broken() const;
  /// When the present step began; whether a step of this state has become void since `time`.
  std::chrono::steady_clock::time_point begun_at() const;
  bool is_void_since(std::chrono::steady_clock::time_point time) const;
  /// Breaks the group on this rank, unless it is. Who waits for a slot is told.
  void break_off(std::exception_ptr error);

  // From the thread that reduces.
  /// False: the step is void, and the slot is not to be reduced. Else the flags to send with it.
  bool begin_slot(int slot, StepFlags& flags);
  /// What all ranks together sent with the slot, void or not.
  void received(int slot, const StepFlags& flags);
  /// This rank's part in the exchange that follows a void slot, and what to make of all parts.
  std::string own_reason() const;
  void set_reasons(std::span<const std::string> reasons);
  /// The slot is over; `error` is the communication's, if any.
  void finish_slot(int slot, std::exception_ptr error);

  /// Ranks read a bucket of this step where it lies in each other's memory.
  void set_read();
  /// Whether they did, once for a step whose slots are all over, not void: then they did so on all ranks.
  bool take_read_through();

  std::vector<SlotTiming> timings() const;
  std::int64_t exchanges() const;

 private:
  struct Slot {
    bool submitted = false;
    bool queued = false;  // handed to the thread that reduces
    bool over = false;
    SlotDone done;
    SlotTiming timing;
  };

  void begin_locked() KOLO_REQUIRES(mutex_);
  std::exception_ptr error_locked() const KOLO_REQUIRES(mutex_);
  Submitted queue_next() KOLO_REQUIRES(mutex_);

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<Slot> slots_ KOLO_GUARDED_BY(mutex_);
  bool begun_ KOLO_GUARDED_BY(mutex_) = false, inside_ KOLO_GUARDED_BY(mutex_) = false;
  bool read_ KOLO_GUARDED_BY(mutex_) = false;
  int next_ KOLO_GUARDED_BY(mutex_) = 0;  // the first slot that is not queued
  std::int64_t begun_steps_ KOLO_GUARDED_BY(mutex_) = 0;
  std::int64_t step_ KOLO_GUARDED_BY(mutex_) = 0;
  bool step_is_set_ KOLO_GUARDED_BY(mutex_) = false;
  VoteBox votes_ KOLO_GUARDED_BY(mutex_);
  std::exception_ptr void_ KOLO_GUARDED_BY(mutex_);  // of this step
  std::chrono::steady_clock::time_point begun_at_ KOLO_GUARDED_BY(mutex_), void_at_ KOLO_GUARDED_BY(mutex_);
  std::exception_ptr broken_ KOLO_GUARDED_BY(mutex_);  // for good
};

}  // namespace kolo::detail
