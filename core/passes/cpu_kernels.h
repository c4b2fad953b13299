// For passes that choose between ops: which nodes the CPU has kernels for.
#pragma once

#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// Whether some kernel takes the node as it is, on `threads` threads: its shapes must be known. Kernels
/// decide by more than types: oneDNN may have no fast code for a group of few channels, say.
bool has_cpu_kernel(const StepGraph& graph, const StepNode& node, int threads);

}  // namespace kolo
