// Initial values are made where they are kept.
#pragma once

#include <kolo/core/passes/step_graph.h>

namespace kolo {

class PlanEnvironment;

/// Places a large value that is read by nothing but the Assign of a variable, the first use of that variable
/// in the step, in the variable's memory: such steps would else need the memory of the largest variable once
/// more. For variables on CPUs that no other session uses. A step that fails between the two leaves the
/// variable with neither its old value nor the new one.
void place_initial_values(StepGraph& graph, PlanEnvironment& environment);

}  // namespace kolo
