// Initial values are made where they are kept.
#pragma once

#include <functional>

#include <kolo/core/kernels/kernel.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// Places a large value that is read by nothing but the Assign of a variable without a value, its first use
/// in the step, in the variable's memory: such steps would else need the memory of the largest variable once
/// more. Not where the Assign waits for anything else, which may stop the step. For variables on CPUs that no
/// other session uses. Where the step runs again and the value cannot be made, the variable keeps neither its
/// old value nor a new one.
/// kept_of: the variable with that storage.
void place_initial_values(StepGraph& graph,
                          const std::function<const VariableStorage&(const Node& storage)>& kept_of);

}  // namespace kolo
