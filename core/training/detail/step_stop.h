// How the ranks of a training loop leave it, or save, together: what is asked on this rank, and what all have
// agreed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/runtime/step_agreement.h>

namespace kolo::detail {

/// With one rank, or without a training step that the ranks share, there is nobody to agree with: every
/// request acts at once. One thread, between the steps.
class StepStop {
 public:
  StepStop(std::vector<std::shared_ptr<StepAgreement>> agreements, int ranks);

  std::size_t num_agreements() const { return agreements_.size(); }
  bool is_alone() const { return agreements_.empty(); }
  /// Compares the schedules of all ranks. Collective; throws on all of them.
  void compare();

  /// What errors call the next step.
  void set_step(std::int64_t step);
  /// Travels with the next step. Asking again changes nothing.
  void ask();
  /// True once the ranks have agreed to end, in whatever way.
  bool is_agreed() const;
  /// All are to save after the next step, if that is one that the ranks share.
  void ask_to_save();
  /// After each run: whether the ranks have agreed to save after its step.
  bool take_save();
  /// This rank goes while the others may still run: they end at their next step. Returns when that step is
  /// over.
  void end_of_data();
  /// The others end in an error with this text. Returns when they know, or after a deadline.
  void fail(const std::string& text);

 private:
  std::vector<std::shared_ptr<StepAgreement>> agreements_;
  bool asked_ = false;
};

}  // namespace kolo::detail
