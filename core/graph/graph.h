// A static dataflow graph: nodes are added, never removed; a session runs parts of it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/core/graph/node.h>

namespace kolo {

/// Asked for the device of each op that is created in its scope, which has its final name and, as its device,
/// what inner scopes asked for; what it returns replaces the op's device.
using DeviceFunction = std::function<std::string(const Node&)>;

/// What a new node is made of, apart from its op, inputs and attributes.
struct NodePlace {
  std::string name;  // wished for; made unique by _1, _2, …
  std::vector<const Node*> control_inputs;
  std::vector<std::string> colocation_groups;
  std::string device;                                                   // of the colocated op, or ""
  std::vector<std::variant<std::string, DeviceFunction>> device_stack;  // innermost first
};

/// Names of the collections that kolo itself fills.
inline constexpr char kGlobalVariables[] = "variables";
inline constexpr char kTrainableVariables[] = "trainable_variables";
inline constexpr char kLocalVariables[] = "local_variables";
inline constexpr char kGlobalStep[] = "global_step";

/// One thread at a time builds; sessions may run what is there meanwhile. Not movable: nodes and handles
/// point to it.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Checks everything, then adds; a failed call leaves no trace. Fills in default attributes, infers types
  /// and shapes. Throws NotFoundError for an unknown op, InvalidArgumentError for inputs, attributes, a name
  /// or a device that do not fit (the message names node and op) and for an op that only passes make,
  /// FailedPreconditionError `Graph is finalized and cannot be modified.`
  const Node& add_node(const std::string& op, const Outputs& inputs, AttrMap attrs, const NodePlace& place);

  int num_nodes() const;
  /// In order of creation.
  const Node& node(int id) const;
  /// nullptr if there is none.
  const Node* find_node(const std::string& name) const;
  /// The tensor "scope/name:0" or "scope/name". Throws with TensorFlow's texts for a name that does not
  /// exist.
  Output find_output(const std::string& name) const;

  /// `wished`, or with _1, _2, … if it is taken; compared without case. Also keeps it. Throws
  /// InvalidArgumentError `'<n>' is not a valid node name`.
  std::string unique_name(const std::string& wished);
  /// True if unique_name would choose another name.
  bool is_taken(const std::string& name) const;

  /// Named lists of nodes; the names are those above, or a user's own.
  void add_to_collection(const std::string& collection, const Node& node);
  const std::vector<const Node*>& collection(const std::string& name) const;
  const std::map<std::string, std::vector<const Node*>>& collections() const { return collections_; }

  /// No node can be added any more, until unfinalize().
  void finalize() { finalized_ = true; }
  void unfinalize() { finalized_ = false; }
  bool is_finalized() const { return finalized_; }
  /// The graph is a part of a step of several tasks: ops that join tasks are welcome.
  void admit_transfers() { admits_transfers_ = true; }
  bool admits_transfers() const { return admits_transfers_; }
  /// The seed of random ops that have none of their own. Unset: random ops differ from session to session.
  void set_seed(std::int64_t seed) { seed_ = seed; }
  std::optional<std::int64_t> seed() const { return seed_; }

 private:
  void check_inputs(const Node& node) const;
  void infer_outputs(Node& node) const;
  std::string apply_device_stack(Node& node, const NodePlace& place) const;
  void release_name(const std::string& wished, const std::string& name);

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Node>> nodes_ KOLO_GUARDED_BY(mutex_);
  std::map<std::string, const Node*> by_name_ KOLO_GUARDED_BY(mutex_);
  std::map<std::string, int>
      taken_names_;  // lower case, with the next suffix to try; the builder's thread alone
  std::map<std::string, std::vector<const Node*>> collections_;
  std::optional<std::int64_t> seed_;
  bool finalized_ = false;
  bool admits_transfers_ = false;
};

/// TensorFlow's ^[A-Za-z0-9.][A-Za-z0-9_.\-/]*$
bool is_valid_node_name(std::string_view name);

/// "MatMul node \"fc1/matmul\"": how messages name a node.
std::string describe(const Node& node);

}  // namespace kolo
