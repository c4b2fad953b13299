// Where new nodes go: the name, device, control-dependency and colocation scopes that the user is in.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <kolo/core/graph/graph.h>

namespace kolo {

/// A small value. Every method that enters a scope returns a new Scope and leaves this one as it is, so
/// scopes nest as C++ blocks do. One thread at a time builds a graph.
class Scope {
 public:
  explicit Scope(Graph& graph);

  Graph& graph() const { return *graph_; }

  /// Nodes made in it are named "outer/name/…"; a name that is taken becomes name_1, … Throws
  /// InvalidArgumentError `'<n>' is not a valid scope name`.
  Scope name_scope(const std::string& name) const;
  /// Names begin anew, outside of all name scopes; devices, containers and colocations stay.
  Scope at_top() const;
  /// The next nodes wish to be named `name` instead of after their op: s.named("x").
  Scope named(const std::string& name) const;
  /// Device of the nodes made in it, whole or in part: fields set by an inner scope win. "" changes nothing.
  /// A bare cpu or gpu has no index. Throws InvalidArgumentError `Cannot specify multiple device types:
  /// <spec>`, `Unknown attribute: '<k>' in '<spec>'` or `Malformed device specification '<spec>'`.
  Scope device(std::string_view spec) const;
  Scope device(const char* spec) const { return device(std::string_view(spec)); }
  /// `choose` sees each node as it is made; its answer replaces the node's device. Empty: as nullptr.
  Scope device(DeviceFunction choose) const;
  /// Outer device scopes have no effect inside.
  Scope device(std::nullptr_t) const;
  /// Nodes made in it run after all of `before`. Scopes nest to the union. Throws InvalidArgumentError if one
  /// of `before` is empty.
  Scope control_dependencies(const std::vector<Operation>& before) const;
  /// Outer control dependencies have no effect inside.
  Scope without_control_dependencies() const;
  /// Nodes made in it are placed with `op`; outer device scopes have no effect inside. Colocations accumulate
  /// unless `ignore_existing`. Throws InvalidArgumentError if `op` is empty.
  Scope colocate_with(Operation op, bool ignore_existing = false) const;

  /// Variables, queues and accumulators made in it are kept in the container `name`, in place of an outer
  /// one; "" is the default container. Making one throws InvalidArgumentError `container contains invalid
  /// characters: <c>`.
  Scope container(const std::string& name) const;

  /// Nodes made in it happen only in steps in which `guard`, an op that guards a branch, lets them; leaves
  /// the branch that this scope is in. An empty operation: outside of all branches. For cond and its
  /// gradients.
  Scope in_branch(Operation guard) const;

  /// Adds a node. `name`: wished for, after the scope's; "" takes the scope's `named`, else the op's name.
  /// Throws as Graph::add_node.
  Operation add(const std::string& op, const Outputs& inputs, AttrMap attrs = {},
                const std::string& name = "") const;
  /// Where `add` puts a node that wishes for `name`: for those that add to the graph themselves.
  NodePlace place(const std::string& name) const;
  /// The scope's full prefix with `name`, made unique: for builders that make several nodes under one name.
  std::string unique_name(const std::string& name) const;
  /// The name that `named` wished for, or `fallback`.
  std::string wished_name(const std::string& fallback) const { return named_.empty() ? fallback : named_; }

 private:
  Graph* graph_;
  std::string prefix_;  // "" or "outer/inner/"
  std::string named_;
  std::string container_;
  std::vector<const Node*> control_inputs_;
  const Node* branch_ = nullptr;
  std::vector<std::string> colocation_groups_;
  std::string colocated_device_;
  std::vector<std::variant<std::string, DeviceFunction>> device_stack_;  // innermost first
};

}  // namespace kolo
