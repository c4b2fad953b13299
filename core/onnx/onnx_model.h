// Networks for other programs: ONNX (https://onnx.ai), which most runtimes and tools read.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kolo/core/base/source_line.h>
#include <kolo/core/graph/node.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

/// The value of a variable, from its storage node: as a checkpoint holds it under the node's name.
using VariableValue = std::function<Tensor(const Node& storage)>;

/// A model of ONNX's opset 17 that computes `outputs`, all of one graph, as inference_form gives them. Its
/// inputs are the placeholders, in the order of their creation, under their names; unknown sizes stay
/// unknown, a first one is "N". Its outputs have the names of their nodes. Variables become constants.
/// Throws UnimplementedError, naming the node, for an op that is not among onnx_ops(), InvalidArgumentError
/// without outputs, for one that is listed twice, for a value of another type or shape than its variable's,
/// and beyond 2 GiB; and what `value` throws.
std::string onnx_model(const Outputs& outputs, const VariableValue& value);

/// The same as a file, which appears whole or not at all. Throws as DurableFile does, too.
void write_onnx(const std::string& path, const Outputs& outputs, const VariableValue& value);

/// Names of the ops that have a form in ONNX, sorted.
std::vector<std::string> onnx_ops();

namespace detail {
class OnnxGraph;
}

/// One node on its way into a model. Values of ONNX are names. Valid during the call that gets it; one
/// thread.
class OnnxNode {
 public:
  OnnxNode(detail::OnnxGraph& graph, const Node& node) : graph_(graph), node_(node) {}

  /// Types, shapes as far as they are known, and attributes.
  const Node& node() const { return node_; }
  std::string input(int i) const;
  std::vector<std::string> inputs() const;
  /// Adds an op of opset 17 with one result, and returns that. attrs: numbers, texts, lists of whole numbers,
  /// and types.
  std::string add(const std::string& op, const std::vector<std::string>& inputs, const AttrMap& attrs = {});
  std::string constant(const Tensor& value);

 private:
  detail::OnnxGraph& graph_;
  const Node& node_;
};

/// Adds what computes the node; returns a value for each of its outputs. May throw kolo's errors.
using OnnxForm = std::function<std::vector<std::string>(OnnxNode&)>;

/// The form of an op of one's own, as a static object beside its RegisterOp. Throws InternalError, with both
/// places, for an op that has one.
struct RegisterOnnxForm {
  RegisterOnnxForm(const std::string& op, OnnxForm form, SourceLine place = SourceLine::here());
};

}  // namespace kolo
