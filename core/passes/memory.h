// Decides where every value of a step lies: most in one arena for each device, whose parts are used again as
// soon as their readers are done.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <kolo/core/passes/step_graph.h>

namespace kolo {

struct ValueMemory {
  enum class Kind {
    arena,     // at `offset` of the step's arena `arena`
    placed,    // where StepGraph::placements says
    variable,  // the storage of node root.node
    constant,  // the tensor in the attributes of node root.node
    feed,      // the caller's tensor for node root.node
    dynamic,   // made by the kernel: its shape depends on values
  };
  Kind kind = Kind::dynamic;
  StepValue root;  // the value itself, or what it is a view of
  int arena = 0;
  std::size_t offset = 0;
};

/// The step's memory on one device.
struct Arena {
  std::string device;
  std::string pinned_for = {};  // the GPU that copies to it, or from it; "" for none
  std::size_t bytes = 0;
  std::size_t unplanned_bytes = 0;  // the sum of its buffers, had each its own
};

struct MemoryPlan {
  std::vector<std::vector<ValueMemory>> values;  // [node][output]
  std::vector<std::size_t> scratch_offsets;      // [node], in the arena of the node's device
  std::vector<int> scratch_arenas;               // [node]; −1 without scratch
  std::vector<Arena> arenas;
  std::size_t arena_bytes = 0;      // of all arenas
  std::size_t unplanned_bytes = 0;  // the sum of all buffers of the arenas, had each its own
};

/// order: the topological order of the step. scratch_bytes: what each node's kernel asked for. host: the CPU
/// that keeps what nodes of a GPU leave in host memory.
/// Adds control edges to `graph` where a buffer takes the place of another, from the readers of the old to
/// the writer of the new, so that the plan is safe under any schedule that keeps to the edges, on any number
/// of threads. Where the nodes stand in streams, they wait along these edges as along the others; none leads
/// from a stream to a node of the host.
MemoryPlan plan_memory(StepGraph& graph, const std::vector<int>& order,
                       const std::vector<std::size_t>& scratch_bytes, const std::string& host = "");

}  // namespace kolo
