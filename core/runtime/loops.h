// Runs the loops of a graph: each iteration is a run of plans of the loop's own.
#pragma once

#include <functional>
#include <memory>

#include <kolo/core/runtime/plan.h>

namespace kolo {

/// Makes the plan of what an iteration computes (compile.h): a body may hold loops of its own.
using CompileIteration = std::function<std::unique_ptr<Plan>(const StepSignature&)>;

/// What a loop's node needs to run, for StepNode::resource; null for nodes that are no loop. `signature`: of
/// the step that it is part of. Throws what `compile` throws for the ops of the loop, InvalidArgumentError
/// for a loop whose tensors do not fit each other, that lies in 10 others or whose body is fed, and
/// UnimplementedError for one in which the ranks would reduce.
std::shared_ptr<void> compile_loop(const StepGraph& graph, const StepNode& node,
                                   const StepSignature& signature, const CompileIteration& compile_iteration);

}  // namespace kolo
