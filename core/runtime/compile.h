// From what a step is asked for to the plan that runs it.
#pragma once

#include <memory>

#include <kolo/core/runtime/plan.h>

namespace kolo {

/// Prunes the graph to what the signature needs, places and rewrites it, and makes a plan of it; the loops in
/// it are compiled alike. Collective where the step has votes that the ranks have not compared yet.
/// Throws what placement, passes, shape functions and kernels throw for a step that cannot be run.
std::unique_ptr<Plan> compile_plan(const StepSignature& signature, PlanEnvironment& environment);

}  // namespace kolo
