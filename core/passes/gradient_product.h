// For passes that make a gradient in another way than as a node of its own.
#pragma once

#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// Of a MatMul: the first factor alone is transposed.
bool has_attrs_of_gradient(const AttrMap& attrs);
/// Whether the node makes xᵀ · dy, what the weights of a dense layer have for a gradient, on a CPU and in
/// f32, of matrices whose shapes are known.
bool is_gradient_product(const StepGraph& graph, const StepNode& node);

}  // namespace kolo
