// Which flags the ranks of a schedule raise and learn of with its steps, and how flags lie beside the data of
// a slot. Nothing else in collectives knows one flag from another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include <kolo/core/runtime/step_vote.h>
#include <kolo/core/tensor/dtype.h>

namespace kolo::detail {

/// Behind the gradients of a bucket stands an element of its type for each flag and each bit of a sum. Each
/// rank adds 0 or 1, so that the sum, and the average too, is zero exactly if no rank has raised the flag.
void write_flags(DType dtype, std::byte* to, const StepFlags& flags);
StepFlags read_flags(DType dtype, const std::byte* from);
/// Beside the number of a rank's rows they are numbers, too.
using FlagNumbers = std::int64_t[kStepFlags];
void write_flags(FlagNumbers& to, const StepFlags& flags);
StepFlags read_flags(const FlagNumbers& from);

/// From raising a flag to learning why a step is void. A flag that voids steps goes with the next slot that
/// begins, any other with the first slot of a step. One thread at a time: its owner's lock.
class VoteBox {
 public:
  /// ranks: the job's numbers of those that share the schedule; none: all ranks.
  explicit VoteBox(std::vector<int> ranks) : ranks_(std::move(ranks)) {}

  /// text: of a failure.
  void raise(StepFlag flag, const std::string& text = {});
  /// A number that all ranks compare; goes with the first slot of a step.
  void raise_sum(std::uint16_t sum) { raised_.add_sum(sum); }
  bool has_raised(StepFlag flag) const { return raised_.has(flag); }
  const std::string& failure() const { return failure_; }

  void begin_step();
  /// What this rank says with a slot, which is sent now.
  StepFlags flags_for(int slot);
  /// What all ranks together said with it.
  void received(int slot, const StepFlags& flags);
  /// This rank's part in the exchange that follows a void slot.
  std::string own_reason(std::int64_t step) const;
  /// What all parts make of the step: an OutOfRangeError where it is void alone, another where the group is
  /// broken. Ends the step.
  struct Reasons {
    std::exception_ptr end_of_data;
    std::exception_ptr failure;
  };
  Reasons read_reasons(std::span<const std::string> reasons, std::int64_t step);
  /// The step is over: what has come is its outcome. error: it ended in one.
  void end_step(bool error);
  /// The same for a step without slots, with which nothing can travel: each rank for itself.
  void end_step_alone();

  const StepFlags& outcome() const { return outcome_; }
  /// Forgets what was raised for a step that has not come.
  StepFlags take_outcome();
  /// Exchanges of reasons so far.
  std::int64_t exchanges() const { return exchanges_; }

 private:
  const std::vector<int> ranks_;
  StepFlags raised_;      // by this rank, not sent yet
  StepFlags sent_;        // by this rank in this step
  StepFlags coming_;      // of all, in this step
  StepFlags outcome_;     // of the last step that is over
  bool is_over_ = false;  // slots finish in order, as the communication thread runs them: none comes behind
  std::string failure_;
  std::int64_t exchanges_ = 0;
};

}  // namespace kolo::detail
