// What the executor reads of a plan's nodes while it runs them: a few bytes a node, side by side, and what
// their kernels have cost so far.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <kolo/core/runtime/ready_set.h>

namespace kolo {

struct Frame;
struct PlanNode;

/// Made once for a plan, shared by all its runs.
class StepTable {
 public:
  enum Flags : std::uint8_t {
    kRunsKernel = 1,
    kIsAsynchronous = 2,
    kChecksVariables = 4,
    kIsConditional = 8
  };

  struct Node {
    int pending = 0;  // nodes that must finish before it
    int first_successor = 0;
    int num_successors = 0;
    std::uint8_t flags = 0;
    /// What its kernel is thought to cost. Kernels on the CPU start as expensive ones, at 1e8; views, kernels
    /// that only start something, and those on a GPU cost nothing here. Runs that update it at the same time
    /// may overwrite each other's: it is an estimate.
    mutable std::atomic<float> cycles{0};
  };

  StepTable(const std::vector<PlanNode>& nodes, const Frame& frame);

  int size() const { return size_; }
  const Node& operator[](int position) const { return nodes_[position]; }
  std::span<const int> successors(const Node& node) const {
    return {successors_.data() + node.first_successor, static_cast<std::size_t>(node.num_successors)};
  }
  std::span<const int> sources() const { return sources_; }

  /// TensorFlow's rule: an inexpensive node runs on the thread that made it ready. A kernel is inexpensive
  /// once its estimate, 0.9 · old + 0.1 · measured, is at most 5000 cycles; from then on it is not measured.
  static bool is_inexpensive(const Node& node) {
    return node.cycles.load(std::memory_order_relaxed) <= kInexpensiveCycles;
  }
  static void add_measurement(const Node& node, std::uint64_t cycles) {
    const float old = node.cycles.load(std::memory_order_relaxed);
    node.cycles.store(0.9f * old + 0.1f * static_cast<float>(cycles), std::memory_order_relaxed);
  }

 private:
  static constexpr float kInexpensiveCycles = 5000;

  int size_;
  std::unique_ptr<Node[]> nodes_;
  std::vector<int> successors_;
  std::vector<int> sources_;  // nodes that wait for nothing
};

/// What a run changes besides values: counters and ready nodes. Belongs to a frame, so that a step allocates
/// nothing.
struct StepMemory {
  explicit StepMemory(int nodes) : size(nodes), pending(new std::atomic<int>[nodes]), shared(nodes) {}

  /// One for each thread that takes part.
  struct alignas(64) Lane {
    Lane(int lane_number, int nodes) : number(lane_number), ready(nodes) {}
    int number;
    int finished = 0;  // nodes that it has run and not yet told of
    ReadySet ready;    // that it will run itself
  };
  void make_lanes(int count) {
    for (int i = static_cast<int>(lanes.size()); i < count; ++i)
      lanes.push_back(std::make_unique<Lane>(i, size));
  }

  int size;
  std::unique_ptr<std::atomic<int>[]> pending;  // by node; the last decrement acquires what others released
  SharedReadySet shared;                        // that any thread may run
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<int> started;  // asynchronous nodes under way, in no order
};

}  // namespace kolo
