#include <kolo/core/graph/scope.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/device/device_name.h>

namespace kolo {

Scope::Scope(Graph& graph) : graph_(&graph) {}

Scope Scope::name_scope(const std::string& name) const {
  // What begins a node's name is stricter than what follows: only a nested scope may begin with "_", "-" or
  // "/".
  if (name.empty() || !is_valid_node_name(prefix_ + name))
    throw InvalidArgumentError("'{}' is not a valid scope name", name);
  Scope inner = *this;
  inner.prefix_ = graph_->unique_name(prefix_ + name) + "/";
  inner.named_.clear();
  return inner;
}

Scope Scope::named(const std::string& name) const {
  Scope inner = *this;
  inner.named_ = name;
  return inner;
}

Scope Scope::at_top() const {
  Scope outer = *this;
  outer.prefix_.clear();
  outer.named_.clear();
  return outer;
}

Scope Scope::device(std::string_view spec) const {
  Scope inner = *this;
  inner.device_stack_.insert(inner.device_stack_.begin(), parse_scope_device(spec).to_string());
  return inner;
}

Scope Scope::device(DeviceFunction choose) const {
  if (!choose) return device(nullptr);
  Scope inner = *this;
  inner.device_stack_.insert(inner.device_stack_.begin(), std::move(choose));
  return inner;
}

Scope Scope::device(std::nullptr_t) const {
  Scope inner = *this;
  inner.device_stack_.clear();
  return inner;
}

Scope Scope::control_dependencies(const std::vector<Operation>& before) const {
  Scope inner = *this;
  for (const Operation& op : before) {
    if (!op) throw InvalidArgumentError("control_dependencies: an operation is empty");
    if (std::find(inner.control_inputs_.begin(), inner.control_inputs_.end(), op.node) ==
        inner.control_inputs_.end())
      inner.control_inputs_.push_back(op.node);
  }
  return inner;
}

Scope Scope::without_control_dependencies() const {
  Scope inner = *this;
  inner.control_inputs_.clear();
  return inner;
}

Scope Scope::colocate_with(Operation op, bool ignore_existing) const {
  if (!op) throw InvalidArgumentError("colocate_with: the operation is empty");
  Scope inner = *this;
  inner.device_stack_.clear();
  if (ignore_existing) inner.colocation_groups_.clear();
  std::vector<std::string> groups = op.node->colocation_groups();
  if (groups.empty()) groups = {"loc:@" + op.node->name()};
  for (auto& group : groups)
    if (std::find(inner.colocation_groups_.begin(), inner.colocation_groups_.end(), group) ==
        inner.colocation_groups_.end())
      inner.colocation_groups_.push_back(std::move(group));
  inner.colocated_device_ = op.node->requested_device();
  return inner;
}

Scope Scope::container(const std::string& name) const {
  Scope inner = *this;
  inner.container_ = name;
  return inner;
}

Scope Scope::in_branch(Operation guard) const {
  Scope inner = *this;
  inner.branch_ = guard.node;
  return inner;
}

NodePlace Scope::place(const std::string& name) const {
  NodePlace place{.name = prefix_ + name,
                  .control_inputs = control_inputs_,
                  .colocation_groups = colocation_groups_,
                  .device = colocated_device_,
                  .device_stack = device_stack_};
  if (branch_ != nullptr) place.control_inputs.push_back(branch_);
  return place;
}

Operation Scope::add(const std::string& op, const Outputs& inputs, AttrMap attrs,
                     const std::string& name) const {
  if (!container_.empty() && find_op(op).attrs().count("container") > 0)
    attrs.try_emplace("container", container_);
  return &graph_->add_node(op, inputs, std::move(attrs), place(name.empty() ? wished_name(op) : name));
}

std::string Scope::unique_name(const std::string& name) const { return graph_->unique_name(prefix_ + name); }

}  // namespace kolo
