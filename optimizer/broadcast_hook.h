// Equal variables on all ranks before the first step.
#pragma once

#include <span>

#include <kolo/collectives/engine/process_set.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/training/hook.h>

namespace kolo {

/// Gives the variables of this session root's values, bit for bit; they count as initialised then.
/// Collective, between runs: every rank calls it with variables of the same names, types and shapes, in any
/// order. Throws on every rank: InvalidArgumentError `root rank <k> is outside the process set of <R> ranks`,
/// `Mismatched root ranks for variables: …`, `Mismatched data types for <name>: …` or `Mismatched shapes for
/// <name>: rank 0 has [17], rank 1 has [18]`; FailedPreconditionError naming the variables that some ranks
/// lack, or `Attempting to use uninitialized value <name>` if root has no value. Nothing is changed then.
/// With a process set all this is among its ranks (root: the job's number of one of them); on a rank outside
/// it nothing is done.
void broadcast_variables(Session& session, std::span<const Variable> variables, int root,
                         const ProcessSet& set = {});

/// The same for all global variables of the session's graph that are not trainable: an optimizer's slots, its
/// counters, the global step.
void broadcast_optimizer_state(Session& session, int root, const ProcessSet& set = {});

/// Broadcasts all global variables, slots and the global step too, when the session has been made; but for
/// those that are each rank's own (core/training/rank_state.h).
class BroadcastGlobalVariablesHook : public SessionRunHook {
 public:
  explicit BroadcastGlobalVariablesHook(int root, const ProcessSet& set = {}) : root_(root), set_(set) {}
  void after_create_session(Session& session) override;

 private:
  int root_;
  ProcessSet set_;
};

}  // namespace kolo
