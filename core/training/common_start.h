// How all ranks of a training come to the same first state.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/hooks.h>
#include <kolo/core/training/monitored_session_options.h>
#include <kolo/core/training/saver.h>

namespace kolo::detail {

/// Throws FailedPreconditionError on every rank unless ranks that share schedules (no ranks: all) have as
/// many of them, which can then be compared one by one. True if some rank has a schedule that not all share.
/// Collective.
bool compare_number_of_schedules(Group& group, const std::map<std::vector<int>, int>& schedules);

/// Throws FailedPreconditionError on every rank, naming the first difference, unless all have variables of
/// the same names, types and shapes, and saved states of the same names. Collective.
void compare_variables(Group& group, const Graph& graph, const std::vector<SavedState>& states);

/// Throws FailedPreconditionError on every rank unless all compute in the same precision: what a compression
/// makes of reduced factors would differ. Collective.
void compare_precision(Group& group, Precision precision);

/// On the chief: the checkpoint that the options name, or the newest intact one of their folder, if there is
/// one (its saved states too), else what the scaffold says, and then initial_weights. `saver` may be null:
/// then one is made where a checkpoint is found; else it takes over the folder's checkpoints. One warning
/// says what of the checkpoint is not used and which variables begin anew. Returns the path of what was
/// restored.
std::optional<std::string> restore_or_initialize(Session& session,
                                                 const MonitoredTrainingSessionOptions& options,
                                                 const std::shared_ptr<Saver>& saver);
/// In every new session, on all ranks.
void initialize_local_variables(Session& session, const Scaffold& scaffold);

/// Runs the initialisers of `variables`, in no order.
void run_initializers(Session& session, const std::vector<Variable>& variables);

/// Global variables, random positions and saved states of rank 0 on every rank; variables that are each
/// rank's own get their first values on the others. Throws on every rank what a state's save or restore
/// throws on any. Collective.
void broadcast_state(Group& group, Session& session, const std::vector<SavedState>& states);

}  // namespace kolo::detail
