// The part of a graph that one step runs, as the passes see and change it: a copy, so that the user's graph
// stays as it is.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <kolo/core/graph/node.h>

namespace kolo {

/// Output `output` of the step's node `node`.
struct StepValue {
  int node = -1;
  int output = 0;
  auto operator<=>(const StepValue&) const = default;  // NOLINT(modernize-use-nullptr): of clang-tidy 14
};

/// The op that stands for a fed value: no kernel, its output is the caller's tensor. Attribute "feed": which
/// of the feeds.
inline constexpr char kFeedOp[] = "Feed";
/// The op that copies its input: where a value must outlive the memory it is in.
inline constexpr char kCopyOp[] = "Copy";

struct StepNode {
  const OpSchema* schema = nullptr;
  std::string name;
  AttrMap attrs;
  std::vector<StepValue> inputs;
  std::vector<int> control_inputs;
  std::vector<int> after;     // nodes that must be done before, whether they happened or were skipped
  std::vector<DType> dtypes;  // of the outputs
  std::vector<Shape>
      shapes;  // of the outputs, with the shapes that are fed; unknown only where they depend on values
  std::string device;              // full name, once placed
  const Node* origin = nullptr;    // of the user's graph; null for feeds and nodes that a pass has made
  const Node* fed = nullptr;       // of a feed: the node whose value it is
  std::shared_ptr<void> resource;  // what a pass hands to the node's kernel: KernelInit::resource
  /// Where the node stands in the order of creation, with room between two nodes for those that passes
  /// insert. Among nodes that could run, the smaller goes first.
  std::int64_t order = 0;
};
inline constexpr std::int64_t kOrderStep = 256;

/// Memory that a value must lie in, instead of the step's arena.
struct Placement {
  std::shared_ptr<Buffer> buffer;
  std::size_t offset = 0;
  bool on_host = true;  // else on the device of the node that writes there
};

struct StepGraph {
  std::vector<StepNode> nodes;
  /// One for each fetch of the caller; node −1 where an operation was asked for.
  std::vector<StepValue> fetches;
  std::map<StepValue, Placement> placements;
  /// Nodes that nothing follows, asked for as operations; until what nobody needs is dropped, then none.
  std::vector<int> ends;

  const Shape& shape(StepValue v) const { return nodes[v.node].shapes[v.output]; }
  DType dtype(StepValue v) const { return nodes[v.node].dtypes[v.output]; }
  /// Adds a node whose outputs' types and shapes follow from its schema.
  int add(const std::string& op, const std::string& name, std::vector<StepValue> inputs, AttrMap attrs,
          std::int64_t order);
  /// Every use of `from`, but those of node `except`, becomes a use of `to`; fetches too.
  void replace_uses(StepValue from, StepValue to, int except = -1);
  /// By node, those that read one of its outputs, ascending; one that reads two is named twice.
  std::vector<std::vector<int>> users() const;
  /// Takes out the nodes that are not to be kept, to which no other refers; node numbers change.
  void compact(const std::vector<bool>& keep);
  /// Makes the node one that does nothing, after all that it waited for. Nobody may use its outputs any more.
  void retire(int node);
  /// The value whose memory `v` is: v itself, or what it is a view of (through identities, reshapes, updated
  /// variables).
  StepValue memory_root(StepValue v) const;
  /// Its kernel fills memory that it is given, which may lie anywhere: no view, nothing that is there already
  /// (a variable, a constant, what is fed) or has its place, and of a size that the graph knows.
  bool is_made_in_given_memory(StepValue v) const;
};

/// For passes that compute a node themselves, or change what its kernel is: true once it is placed on a CPU.
bool is_on_cpu(const StepNode& node);

/// Computes types and shapes of a node's outputs from its inputs'. Errors name the node.
void infer_outputs(StepGraph& graph, int node);
/// Node indices such that inputs and control inputs come first; among those that could come, the one of least
/// `order`. Throws InternalError on a cycle.
std::vector<int> topological_order(const StepGraph& graph);
/// Nodes that others wait for but by reading them: with control edges, in an order that a pass added, or
/// because the operation was asked for.
std::set<int> nodes_waited_for(const StepGraph& graph);
/// By node: whether a step may skip it, a node of a branch or one that waits for such.
std::vector<bool> can_be_skipped(const StepGraph& graph);

}  // namespace kolo
