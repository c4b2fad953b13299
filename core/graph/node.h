// One operation of a graph: its op, its inputs, its attributes, and what is known of its outputs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kolo/core/graph/op_schema.h>

namespace kolo {

class Graph;

/// Made by Graph alone; never moves, lives as long as its graph. Read by any thread once it is made.
class Node {
 public:
  /// Position in the order of creation. Inputs of a node have smaller ids, so ids are a topological order.
  int id() const { return id_; }
  const std::string& name() const { return name_; }
  const OpSchema& schema() const { return *schema_; }
  const std::string& op() const { return schema_->name(); }
  const Graph& graph() const { return *graph_; }

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  const Output& input(int i) const { return inputs_.at(i); }
  const Outputs& inputs() const { return inputs_; }
  /// Nodes that must have run before this one, beyond the inputs.
  const std::vector<const Node*>& control_inputs() const { return control_inputs_; }

  /// The guard of the innermost branch of a `cond` that the node was made in; null outside of all. Among the
  /// control inputs.
  const Node* branch() const { return branch_; }

  int num_outputs() const { return static_cast<int>(output_dtypes_.size()); }
  /// Throws InvalidArgumentError if there is no output `i`.
  Output output(int i = 0) const;
  DType output_dtype(int i) const { return output_dtypes_.at(i); }
  const Shape& output_shape(int i) const { return output_shapes_.at(i); }

  const AttrMap& attrs() const { return attrs_; }
  /// Throws InternalError if the op has no attribute of this name.
  const AttrValue& attr(const std::string& name) const;
  template <typename T>
  T attr(const std::string& name) const {
    return attr(name).get<T>();
  }

  /// As the scopes asked; "" where nothing was asked.
  const std::string& requested_device() const { return device_; }
  /// "loc:@x": placed with the node x and all others of that group.
  const std::vector<std::string>& colocation_groups() const { return colocation_groups_; }

 private:
  friend class Graph;
  Node() = default;

  int id_ = 0;
  std::string name_;
  const OpSchema* schema_ = nullptr;
  const Graph* graph_ = nullptr;
  Outputs inputs_;
  std::vector<const Node*> control_inputs_;
  const Node* branch_ = nullptr;
  AttrMap attrs_;
  std::vector<DType> output_dtypes_;
  std::vector<Shape> output_shapes_;
  std::string device_;
  std::vector<std::string> colocation_groups_;
};

}  // namespace kolo
