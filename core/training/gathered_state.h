// How state that is spread over the ranks comes into one checkpoint: all ranks put it together on rank 0,
// which then saves.
#pragma once

#include <map>
#include <string>

#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>

namespace kolo {

/// Whether a checkpoint of the session needs all ranks of the group: there are several, and its graph holds
/// shards (sharded_state.h), or, beside a training step that all ranks share, variables of which each rank
/// has its own value (optional_state.h).
bool is_spread_over_ranks(Session& session, const Group& group = world_group());

/// While it lives, Saver::save(session) on rank 0 finds what all ranks hold together; without it a save of
/// spread state is refused. A monitored session makes one by itself: when it has been made and before it
/// closes, where a hook of rank 0 saves then (SessionRunHook::saves), and after each step for which a hook
/// announced a save. In a loop of one's own:
///   {
///     const GatheredState together(session);  // on all ranks
///     if (rank() == 0) saver.save(session, prefix, step);
///   }
/// One thread, between runs; the session must outlive it and make no training step meanwhile.
class GatheredState {
 public:
  /// Collective, tensor by tensor; sends nothing where the state is not spread. Rank 0 holds copies of the
  /// whole tensors afterwards. Throws on every rank: FailedPreconditionError where the ranks' variables do
  /// not fit each other, where their shards do not make up the whole tensor, or `Attempting to use
  /// uninitialized value <name>`; ResourceExhaustedError where rank 0 has no memory for it; AbortedError
  /// `rank <r>: <text>` where that rank refused; and what the group throws.
  explicit GatheredState(Session& session, Group& group = world_group());
  ~GatheredState();
  GatheredState(const GatheredState&) = delete;
  GatheredState& operator=(const GatheredState&) = delete;

  /// In place of the constructor, on a rank that has failed while the others come to save: none waits for it
  /// then, and nothing is saved. Throws what the group throws.
  static void refuse(const std::string& text, Group& group = world_group());

 private:
  Session& session_;
  std::map<std::string, Tensor> tensors_;  // on rank 0, by their names in a checkpoint
};

}  // namespace kolo
