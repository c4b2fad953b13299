// A graph of ONNX while it is made, and the form that each op takes there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <kolo/core/graph/node.h>
#include <kolo/core/tensor/tensor.h>

#include "core/onnx/onnx.pb.h"

namespace kolo::detail {

onnx::Tensor::DataType onnx_type(DType dtype);

/// Values of ONNX are names. Those of a node's result are the node's own; what its form needs beside has a
/// colon in its name, which no node has.
class OnnxGraph {
 public:
  using Names = std::vector<std::string>;

  explicit OnnxGraph(onnx::Graph& graph) : graph_(graph) {}

  /// For the nodes and constants that are added from here on.
  void begin(const Node& node);
  /// Their value, which takes the name of the node if it was added for it.
  std::string end(const std::string& result);

  /// The name of the result. attrs: numbers, texts, lists of whole numbers, and a type.
  std::string add(const std::string& op, const Names& inputs, const AttrMap& attrs = {});
  Names add_with_outputs(const std::string& op, const Names& inputs, const AttrMap& attrs, int outputs);
  std::string constant(const std::string& name, const Tensor& value);
  /// A constant of the node at hand.
  std::string constant(const Tensor& value);
  std::string numbers(const std::vector<std::int64_t>& values);
  /// Of type f32 or f64. Throws UnimplementedError for another.
  std::string scalar(DType dtype, double value);

  void set_name(const Output& value, const std::string& name) { names_[{value.node, value.index}] = name; }
  /// Throws UnimplementedError for a value that the form of its node does not give.
  const std::string& name_of(const Output& value) const;

 private:
  std::string unique(const std::string& what);

  onnx::Graph& graph_;
  const Node* node_ = nullptr;
  std::map<std::string, int> taken_;  // beside the node's own name
  std::map<std::pair<const Node*, int>, std::string> names_;
};

/// Adds what computes `node` and names its outputs. Throws UnimplementedError for an op without a form.
void add_onnx_form(OnnxGraph& graph, const Node& node);

}  // namespace kolo::detail
