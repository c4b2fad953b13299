// Checks that a step must pass before it updates anything.
#pragma once

#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// The collection of a graph's nodes that may refuse a step, by throwing: in a step that runs one, no
/// variable is updated before it is done, but those that it needs itself.
inline constexpr char kUpdateGuards[] = "update_guards";

/// A pass, behind all that change nodes: adds the edges from the guards to the updates, and lets each guard
/// run as soon as its inputs are there, so that no update waits longer than it must.
void guard_updates(StepGraph& graph);

}  // namespace kolo
