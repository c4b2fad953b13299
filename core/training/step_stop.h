// How the ranks of a training loop leave it, or save, together: what is asked on this rank, and what all have
// agreed.
#pragma once

#include <cstdint>
#include <map>
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

  /// How many schedules this rank shares with which ranks; no ranks: with all.
  std::map<std::vector<int>, int> count_by_ranks() const;
  bool is_alone() const { return agreements_.empty(); }
  /// Compares the schedules. Collective; throws on all ranks of the one that differs.
  void compare();

  /// What errors call the next step.
  void set_step(std::int64_t step);
  /// Travels with the next step. Asking again changes nothing.
  void ask();
  /// True once ranks with which this one shares a schedule have agreed to end, in whatever way.
  bool is_agreed() const;
  /// The same where these are all ranks.
  bool is_agreed_by_all() const;
  /// The last step was void on all ranks, for one had no more data.
  bool is_end_of_data() const;
  /// All are to save after the next step, if that is one that all ranks share.
  void ask_to_save();
  /// After each run: whether all ranks have agreed to save after its step.
  bool take_save();
  /// This rank goes while the others that share a schedule with it may still run: they end at their next
  /// step. Returns when that step is over.
  void end_of_data();
  /// The others end in an error with this text. Returns when they know, or after a deadline.
  void fail(const std::string& text);

 private:
  bool all_know(const StepAgreement& agreement) const;

  std::vector<std::shared_ptr<StepAgreement>> agreements_;
  bool asked_ = false;
};

}  // namespace kolo::detail
