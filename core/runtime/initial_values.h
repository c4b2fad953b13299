// Initial values are made where they are kept.
#pragma once

#include <functional>

#include <kolo/core/passes/step_graph.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

/// Places a large value that is read by nothing but the Assign of a variable, the first use of that variable
/// in the step, in the variable's memory: such steps would else need the memory of the largest variable once
/// more. For variables on CPUs that no other session uses. A step that fails between the two leaves the
/// variable with neither its old value nor the new one.
/// kept_of: the value of the variable with that storage.
void place_initial_values(StepGraph& graph, const std::function<const Tensor&(const Node& storage)>& kept_of);

}  // namespace kolo
