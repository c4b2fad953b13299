// The two small handles that users hold: one value of a node, and a node as an operation to run.
#pragma once

#include <string>
#include <vector>

#include <kolo/core/tensor/dtype.h>
#include <kolo/core/tensor/shape.h>

namespace kolo {

class Node;

/// Value `index` of a node. A default-constructed one stands for "none" (an absent gradient). Valid as long
/// as its graph.
struct Output {
  const Node* node = nullptr;
  int index = 0;

  explicit operator bool() const { return node != nullptr; }
  bool operator==(const Output&) const = default;
  DType dtype() const;
  /// What is known when the graph is built.
  const Shape& shape() const;
  /// "scope/relu:0".
  std::string name() const;
};

using Outputs = std::vector<Output>;

/// A node that is run for its effect, or as what others wait for. Converts to its value 0 where one is asked
/// for.
struct Operation {
  const Node* node = nullptr;

  Operation() = default;
  Operation(const Node* of) : node(of) {}
  Operation(Output of) : node(of.node) {}
  explicit operator bool() const { return node != nullptr; }
  bool operator==(const Operation&) const = default;
  /// Throws InvalidArgumentError if the operation has no such output.
  Output output(int index) const;
  operator Output() const { return output(0); }
  const std::string& name() const;
};

}  // namespace kolo
