// Decides where every value of a step lies: most in one arena whose parts are used again as soon as their
// readers are done.
#pragma once

#include <cstddef>
#include <vector>

#include <kolo/core/passes/step_graph.h>

namespace kolo {

struct ValueMemory {
  enum class Kind {
    arena,     // at `offset` of the step's arena
    placed,    // where StepGraph::placements says
    variable,  // the storage of node root.node
    constant,  // the tensor in the attributes of node root.node
    feed,      // the caller's tensor for node root.node
    dynamic,   // made by the kernel: its shape depends on values
  };
  Kind kind = Kind::dynamic;
  StepValue root;  // the value itself, or what it is a view of
  std::size_t offset = 0;
};

struct MemoryPlan {
  std::vector<std::vector<ValueMemory>> values;  // [node][output]
  std::vector<std::size_t> scratch_offsets;      // [node], in the arena
  std::size_t arena_bytes = 0;
  std::size_t unplanned_bytes = 0;  // the sum of all buffers of the arena, had each its own
};

/// order: the topological order of the step. scratch_bytes: what each node's kernel asked for.
/// Adds control edges to `graph` where a buffer takes the place of another, from the readers of the old to
/// the writer of the new, so that the plan is safe under any schedule that keeps to the edges, on any number
/// of threads.
MemoryPlan plan_memory(StepGraph& graph, const std::vector<int>& order,
                       const std::vector<std::size_t>& scratch_bytes);

}  // namespace kolo
