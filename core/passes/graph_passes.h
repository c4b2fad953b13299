// The passes that make a step faster without changing what it computes: every fetched value and every
// variable keeps its bits, every effect happens, in the same order.
#pragma once

#include <string>
#include <vector>

#include <kolo/core/passes/graph_options.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo {

/// In the order in which they run.
std::vector<std::string> graph_pass_names();
/// Throws InvalidArgumentError for a disabled pass that there is not.
void check_graph_options(const GraphOptions& options);
/// On a step whose nodes are placed. threads: that kernels of the step will be made for. Then drops what
/// nobody needs any more; node numbers change. Time: linear in nodes and edges, but for sorting.
void run_graph_passes(StepGraph& graph, const GraphOptions& options, int threads);

/// Computes, with the CPU's own kernels, nodes all of whose inputs are constants: they become constants,
/// under their own names. Left alone: what is stateful, has more than one output, or would take more than 1
/// MiB; a kernel that throws is left to throw in the step.
void fold_constants(StepGraph& graph, int threads);
/// Bit-exact arithmetic: x·1, x/1, x−0, −−x, a sum of one; transposes of transposes, reshapes of reshapes,
/// identities, repeated rectifiers. Not x+0 (−0 would become 0) or x·0 (NaN).
void simplify(StepGraph& graph, int threads);
/// Nodes of the same op, attributes, inputs, control inputs and device become one, the first. Never what is
/// stateful; never across an update of a variable that they read.
void merge_common(StepGraph& graph, int threads);
/// Trees of element-wise ops (and bias_add) of one shape become one node each that goes through memory once,
/// named after all of them. A value that something else reads, fetches or waits for stays a node.
void fuse_elementwise(StepGraph& graph, int threads);

}  // namespace kolo
