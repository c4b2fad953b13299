// How the ranks of a training loop stop, save, end and fail together.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/runtime/step_vote.h>
#include <kolo/core/training/drift_check.h>
#include <kolo/core/training/hook.h>
#include <kolo/core/training/rank_state_internal.h>

namespace kolo::detail {

/// What is wished on this rank goes out with its next training step; what all have learned with a step
/// decides how they go on. With one rank, or without a step that the ranks share, there is nobody to agree
/// with: every wish acts at once. One thread, between the steps.
class Rendezvous {
 public:
  /// votes: those of `session`, which outlives it.
  /// check_drift: steps between two comparisons of the weights (DriftCheck); 0: never.
  Rendezvous(Session& session, Group& group, StepVotes votes, std::int64_t check_drift = 0);

  /// Throws on every rank unless all have the same training steps. Collective.
  void compare();
  /// layout: of the session's variables, by which all ranks save together; empty where rank 0 does so alone.
  /// All hear whether a hook of rank 0 saves when the session begins and ends. Collective.
  void agree_on_saving(RankLayout layout, bool some_hook_saves);
  /// What errors call the next step.
  void set_step(std::int64_t step);

  /// What the hooks wish for the run, and a signal, goes with its step.
  void send_wishes(const RunContext& context);
  /// After that run, and before its hooks are called: what all ranks put together where they have agreed to
  /// save after its step, else nullptr. Collective there, and where the weights of the ranks differ: that is
  /// thrown on all of them.
  std::unique_ptr<const GatheredState> gather_if_agreed();
  /// The same at the beginning and at the end, where rank 0 saves then.
  std::unique_ptr<const GatheredState> gather_at_ends();
  /// After the hooks of the run: whether it was the last one.
  void decide(const RunContext& context);

  /// No other step is to be run: true on all ranks after the same one.
  bool is_over() const { return phase_ != Phase::training; }
  /// The same, and a signal counts at once where there is nobody to agree with.
  bool should_stop();
  /// Because of a signal or another rank, not because a hook of this rank has asked.
  bool stopped_on_request() const { return phase_ == Phase::stopping && !hook_asked_; }
  bool has_failed() const { return phase_ == Phase::failed || phase_ == Phase::failed_unseen; }

  /// A run has found the end of the data: all end with it, and true is returned; or this rank alone is out of
  /// data behind a step after which the others save: that is a failure, of which they are told.
  bool end_of_data(const std::string& text);
  /// The others end in an error with this text. Returns when they know, or after a deadline: those that come
  /// to save are told there.
  void fail(const std::string& text);
  /// The session could not be made again, and there is nobody to tell.
  void give_up() { phase_ = Phase::failed; }
  /// This rank goes, while the others may still run: they end at their next step. False where it has failed,
  /// and its hooks are not to be called any more.
  bool leave();

 private:
  enum class Phase {
    training,
    saving,         // all have agreed to save after the last step, and come to put it together
    stopping,       // all stop after the last step
    ended,          // this rank's data, and with it the training of all
    failed,         // the others know
    failed_unseen,  // the others had left in good order: they come to save at the end
  };
  struct Member {
    std::shared_ptr<StepVote> vote;
    std::vector<int> ranks;  // none: all
    DriftCheck drift;
    StepFlags told;  // with all steps so far
    StepFlags last;  // with the last one
    bool has_ended() const { return told.has(StepFlag::stop) || told.has(StepFlag::end_of_data); }
  };

  bool is_alone() const { return members_.empty(); }
  std::map<std::vector<int>, int> count_by_ranks() const;
  void take_outcomes();
  bool any_has_ended() const;
  bool all_know(const Member& member);
  void tell_end_of_data();

  Session& session_;
  Group& group_;
  std::vector<Member> members_;
  Phase phase_ = Phase::training;
  bool stop_asked_ = false;  // here; until all know
  bool hook_asked_ = false;
  RankLayout layout_;
  bool saves_at_ends_ = false;
  std::optional<std::int64_t> step_;  // the next one
  std::string failure_;
};

}  // namespace kolo::detail
