// What is known of a schedule's present step: which buckets were submitted, which flags wait to travel, what
// came.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/runtime/step_agreement.h>
#include <kolo/core/tensor/dtype.h>

namespace kolo::detail {

/// Elements behind the gradients of a bucket. Each rank adds 0 or 1, so that the sum, and the average too, is
/// zero exactly if no rank has raised the flag.
struct StepFlags {
  bool stop = false;
  bool end_of_data = false;
  bool failed = false;
  bool save = false;
  bool is_void() const { return end_of_data || failed; }
};
inline constexpr int kFlagElements = 4;

void write_flags(DType dtype, std::byte* to, const StepFlags& flags);
StepFlags read_flags(DType dtype, const std::byte* from);

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
class StepState {
 public:
  /// ranks: the job's numbers of those that share the schedule; none: all ranks.
  explicit StepState(int buckets, std::vector<int> ranks = {});

  void set_step(std::int64_t step);
  /// Throws the group's error, or FailedPreconditionError where the step before was left half-way.
  void begin();
  /// The same, but false where begin() throws the group's error.
  bool begin_unless_broken();
  /// The step has ended on this rank. Where it reduced all that lies before slot `optional`, what it did not
  /// submit of the others is over without a message: all ranks leave out the same. A step that is void, or
  /// has something on its way, stays as it is.
  void end(int optional);
  /// True if a step has begun of which some bucket is not over, and that is not void.
  bool is_under_way() const;

  struct Submitted {
    int first = 0, end = 0;    // the buckets whose turn it is now: none, one or several
    std::exception_ptr error;  // the step is void or the group broken; `done` was left to the caller
  };
  Submitted submit(int bucket, SlotDone& done);
  /// All that this rank has not submitted, as they are: for a step that this rank is about to void. Who
  /// submits one of them later is told so.
  Submitted submit_missing();
  /// Grows from step to step and from bucket to bucket, in the same way on all ranks.
  std::int64_t ticket(int bucket) const;

  void raise_stop();
  void raise_save();
  /// Whether all ranks are to save after the last step; true once. What is raised and not sent is lowered.
  bool take_save();
  /// The ranks are about to save after the last step: take_save() would be true.
  bool is_save_pending() const;
  void raise_end_of_data();
  /// For the step that has begun; false if some bucket has left already.
  bool raise_end_of_data_in_step();
  void raise_failure(const std::string& text);
  /// Waits until the present step is over, void, or the group broken. False when the deadline passes first.
  bool wait_until(std::chrono::steady_clock::time_point deadline) const;
  /// Why the step is void or the group broken; nullptr if it is neither.
  std::exception_ptr error() const;
  bool is_broken() const;
  /// When the present step began; whether a step of this state has become void since `time`.
  std::chrono::steady_clock::time_point begun_at() const;
  bool is_void_since(std::chrono::steady_clock::time_point time) const;
  /// Breaks the group on this rank, unless it is. Who waits for a bucket is told.
  void break_off(std::exception_ptr error);

  // From the thread that reduces.
  /// False: the step is void, and the bucket is not to be reduced. Else the flags to send with it.
  bool begin_bucket(int bucket, StepFlags& flags);
  /// What all ranks together sent with the bucket, void or not.
  void received(int bucket, const StepFlags& flags);
  /// This rank's part in the exchange that follows a void bucket, and what to make of all parts.
  std::string own_reason() const;
  void set_reasons(std::span<const std::string> reasons);
  /// The bucket is over; `error` is the communication's, if any.
  void finish_bucket(int bucket, std::exception_ptr error);

  StepVerdict last_verdict() const;
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

  const std::vector<int> ranks_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<Slot> slots_ KOLO_GUARDED_BY(mutex_);
  bool begun_ KOLO_GUARDED_BY(mutex_) = false;
  int next_ KOLO_GUARDED_BY(mutex_) = 0;  // the first bucket that is not queued
  std::int64_t begun_steps_ KOLO_GUARDED_BY(mutex_) = 0;
  std::int64_t step_ KOLO_GUARDED_BY(mutex_) = 0;
  bool step_is_set_ KOLO_GUARDED_BY(mutex_) = false;
  StepFlags raised_ KOLO_GUARDED_BY(mutex_);  // by this rank, not sent yet
  StepFlags sent_ KOLO_GUARDED_BY(mutex_);    // by this rank in this step
  std::string failure_ KOLO_GUARDED_BY(mutex_);
  StepVerdict coming_ KOLO_GUARDED_BY(mutex_), verdict_ KOLO_GUARDED_BY(mutex_);
  bool save_coming_ KOLO_GUARDED_BY(mutex_) = false, save_ KOLO_GUARDED_BY(mutex_) = false;
  std::exception_ptr void_ KOLO_GUARDED_BY(mutex_);  // of this step
  std::chrono::steady_clock::time_point begun_at_ KOLO_GUARDED_BY(mutex_), void_at_ KOLO_GUARDED_BY(mutex_);
  std::exception_ptr broken_ KOLO_GUARDED_BY(mutex_);  // for good
  std::int64_t exchanges_ KOLO_GUARDED_BY(mutex_) = 0;
};

}  // namespace kolo::detail
