// How the ranks that share a training step agree to go on, to stop or to save after it, or to void it. What
// they say travels inside the step's own reductions, so that a step costs no message more. collectives
// implements it for each compiled schedule: a StepVote is the executor's view of a schedule. The same object
// takes the step's reductions on, one slot after the other, so begin(), advance() and end() stand here, too.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/base/source_line.h>
#include <kolo/core/graph/node.h>
#include <kolo/core/runtime/trace.h>

namespace kolo {

class DeviceSet;

/// What one rank says and all ranks of a schedule learn with a step.
enum class StepFlag {
  stop,         // all stop after the step, which was applied
  save,         // all save after the step
  end_of_data,  // that rank has no more data: no rank applies the step, all close normally
  failed,       // that rank has failed: the step and the group end in an error
  count         // of them; no flag
};
/// Bits of a number that every rank gives and that should be the same on all: two more elements for each, of
/// which a rank raises the one that says 0 or the one that says 1. All ranks see whether both were raised.
inline constexpr std::size_t kSumBits = 16;
inline constexpr std::size_t kStepFlags = static_cast<std::size_t>(StepFlag::count) + 2 * kSumBits;

/// Some of them, and the bits of the number.
class StepFlags {
 public:
  StepFlags() = default;
  StepFlags(std::initializer_list<StepFlag> flags) {
    for (const StepFlag flag : flags) add(flag);
  }
  bool has(StepFlag flag) const { return bits_[static_cast<std::size_t>(flag)]; }
  void add(StepFlag flag) { bits_.set(static_cast<std::size_t>(flag)); }
  void remove(StepFlag flag) { bits_.reset(static_cast<std::size_t>(flag)); }
  void add(const StepFlags& others) { bits_ |= others.bits_; }
  void add_sum(std::uint16_t sum) {
    for (std::size_t i = 0; i < kSumBits; ++i) bits_.set(first_of(i) + (sum >> i & 1U));
  }
  bool has_sum() const { return bits_[first_of(0)] || bits_[first_of(0) + 1]; }
  /// Of flags that were added up over ranks: not all that gave a number gave the same.
  bool sums_differ() const {
    for (std::size_t i = 0; i < kSumBits; ++i)
      if (bits_[first_of(i)] && bits_[first_of(i) + 1]) return true;
    return false;
  }
  bool empty() const { return bits_.none(); }
  /// Nobody applies a step with one of these.
  bool voids_step() const { return has(StepFlag::end_of_data) || has(StepFlag::failed); }
  bool operator==(const StepFlags&) const = default;

 private:
  static constexpr std::size_t first_of(std::size_t bit) {
    return static_cast<std::size_t>(StepFlag::count) + 2 * bit;
  }

  std::bitset<kStepFlags> bits_;
};

/// One for each schedule of a session. Any thread, but one step at a time.
class StepVote {
 public:
  virtual ~StepVote() = default;
  /// The job's numbers of the ranks that vote, in ascending order; none: all ranks.
  virtual std::vector<int> ranks() const { return {}; }
  /// Collective, once, before the first step. Throws FailedPreconditionError on every rank
  /// `Ranks disagree on the training step: …` if the schedules differ.
  virtual void compare() = 0;
  /// The number that errors name for the next step; without it steps count from 1.
  virtual void set_step(std::int64_t step) = 0;
  /// A step that contains the schedule's reductions starts on this rank. One at a time: end() comes before
  /// the next.
  virtual void begin() = 0;
  /// That step is over on this rank, whether it succeeded or failed.
  virtual void end() = 0;
  /// What the step waits for and the thread that began it may advance, by looking whether the other ranks are
  /// there: that saves waking another thread for it. On that thread, when it has nothing to run.
  enum class Waits { for_nothing_here, still, no_more };
  virtual Waits advance() { return Waits::for_nothing_here; }
  /// That thread is about to sleep: another one is to look. Any thread.
  virtual void hand_over() {}
  /// A flag that voids no step: it travels with the next step that begins before take_outcome(), which
  /// forgets it otherwise. Does not wait.
  virtual void cast(StepFlag flag) = 0;
  /// A number that should be the same on all ranks; it travels as a flag does, and the outcome says whether
  /// it was (StepFlags::sums_differ).
  virtual void cast_sum(std::uint16_t /*sum*/) {}
  /// The names of the variables whose gradients the schedule combines.
  virtual std::vector<std::string> names() const { return {}; }
  /// Each rank's text, in the order of ranks(). Collective, between two steps.
  virtual std::vector<std::string> exchange(const std::string& text) { return {text}; }
  /// A flag that voids the step: this rank leaves, for good or (the end of its data) for this epoch, and
  /// returns when the others know, or after a deadline. What it has not contributed yet goes out as it is.
  /// end_of_data, between steps: instead of its next one; throws what that ended with if it is something
  /// else. In a step: the same as long as this rank has contributed nothing to it; from then on it has
  /// failed. failed, in or before a step: the others end in AbortedError `rank <r> failed in step <s>:
  /// <text>`. Tells nobody while the outcome of the last step has a save in it that was not taken: the others
  /// are where they save, not in another step.
  virtual void leave(StepFlag flag, const std::string& text) = 0;
  /// What all ranks have learned with the last finished step; the same on all of them. Once for each step:
  /// nothing is left of it then. A save is none after a step that was void.
  virtual StepFlags take_outcome() = 0;
  /// Adds what the communication thread did for the last step: when each bucket was really reduced.
  virtual void append_trace(StepTrace& trace) const = 0;
};

using StepVotes = std::vector<std::shared_ptr<StepVote>>;

/// Makes the vote of a node of a session with these devices; collectives registers one for each of its
/// grouped ops. nullptr: this rank has nobody to agree with.
using VoteFactory = std::shared_ptr<StepVote> (*)(const Node& node, const DeviceSet& devices);
struct RegisterVote {
  RegisterVote(const std::string& op, VoteFactory make, SourceLine place = SourceLine::here());
};
/// nullptr if nodes of this op need none.
VoteFactory vote_factory(const std::string& op);

namespace detail {

/// Tells every vote that this rank's step has failed, or has found the end of the data; goes on, and logs,
/// where one of them throws. May block.
void tell_others(const StepVotes& votes, const std::exception_ptr& error);

/// The votes of one step, begun one after the other and ended together in whatever way the step ends. One
/// thread.
class VotedStep {
 public:
  /// Without votes it does nothing. With some, `one_step` is held until the end: a session has one such step
  /// at a time. Where one cannot begin, the others are told, those that have begun are ended, and its error
  /// is thrown.
  VotedStep(Mutex& one_step, const StepVotes& votes);
  ~VotedStep() { end(); }
  VotedStep(const VotedStep&) = delete;
  VotedStep& operator=(const VotedStep&) = delete;

  /// Does what comes before the step's kernels run: if it throws, the others are told.
  template <typename Prepare>
  void prepare(const Prepare& prepare) const {
    try {
      prepare();
    } catch (...) {
      tell_others(votes_, std::current_exception());
      throw;
    }
  }

 private:
  void end();

  const StepVotes& votes_;
  std::size_t begun_ = 0;
  std::unique_lock<Mutex> lock_;
};

}  // namespace detail
}  // namespace kolo
