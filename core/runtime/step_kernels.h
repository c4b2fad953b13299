// Kernels around kernels, of nodes whose shapes only a step tells.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <kolo/core/kernels/kernel.h>
#include <kolo/core/passes/step_graph.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo {

/// Makes the node's kernel for shapes that are known.
using MakeForShapes = std::function<std::unique_ptr<Kernel>(
    const std::vector<Shape>& inputs, const std::vector<Shape>& outputs, std::size_t& scratch_bytes)>;

/// A kernel that looks at its inputs before it computes: where the output shapes follow from theirs, it makes
/// a kernel for those shapes (kept as long as they stay) and memory for the outputs. Elsewhere, as for an op
/// that makes its outputs itself, `kernel`, made without knowing the shapes, computes. Inputs that do not fit
/// each other throw what the op's shape function throws. Outputs and scratch come from `memory`, the node's
/// device's. `node`, `step` and `memory` outlive it.
std::unique_ptr<Kernel> follow_shapes(std::unique_ptr<Kernel> kernel, const StepGraph& step,
                                      const StepNode& node, Allocator& memory, MakeForShapes make);
/// Whether the node needs that: some shape is not known, and it neither joins branches, nor is a view, nor
/// has a pass prepared its kernel.
bool needs_shapes_of_the_step(const StepGraph& step, const StepNode& node);

/// The kernel of a view (identity, reshape) of a tensor that another kernel makes.
std::unique_ptr<Kernel> make_view(const StepGraph& step, const StepNode& node);

}  // namespace kolo
