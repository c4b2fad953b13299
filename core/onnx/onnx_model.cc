#include <kolo/core/onnx/onnx_model.h>

#include <algorithm>

#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/graph/nodes_behind.h>

#include "onnx_graph_internal.h"

namespace kolo {
namespace {

constexpr int kIrVersion = 8;  // ONNX 1.10 and later read it
constexpr int kOperatorSet = 17;

void describe_value(onnx::ValueInfo& value, const std::string& name, const Output& of, bool is_input) {
  value.set_name(name);
  onnx::Type::TensorType& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(detail::onnx_type(of.dtype()));
  if (!of.shape().has_rank()) return;
  onnx::Shape& shape = *type.mutable_shape();
  for (int axis = 0; axis < of.shape().rank(); ++axis) {
    onnx::Shape::Dimension& dim = *shape.add_dim();
    if (of.shape().dim(axis) >= 0) dim.set_dim_value(of.shape().dim(axis));
    else if (is_input && axis == 0) dim.set_dim_param("N");
  }
}

Tensor checked_value(const Node& storage, const VariableValue& value) {
  Tensor tensor = value(storage);
  if (tensor.dtype() == storage.output_dtype(0) && tensor.shape() == storage.output_shape(0)) return tensor;
  throw InvalidArgumentError("the value of \"{}\" is {} {}; the variable is {} {}", storage.name(),
                             tensor.dtype(), tensor.shape(), storage.output_dtype(0),
                             storage.output_shape(0));
}

void add_node(onnx::Graph& graph, detail::OnnxGraph& nodes, const Node& node, const VariableValue& value) {
  if (node.op() == "Placeholder") {
    describe_value(*graph.add_input(), node.name(), node.output(), true);
    nodes.set_name(node.output(), node.name());
  } else if (node.op() == "Variable") {
    nodes.set_name(node.output(), nodes.constant(node.name(), checked_value(node, value)));
  } else {
    detail::add_onnx_form(nodes, node);
  }
}

void check_outputs(const Outputs& outputs) {
  if (outputs.empty()) throw InvalidArgumentError("a model of ONNX has at least one output; none was given");
  for (auto output = outputs.begin(); output != outputs.end(); ++output)
    if (std::find(outputs.begin(), output, *output) != output)
      throw InvalidArgumentError("\"{}\" is asked for twice as an output", output->name());
}

bool is_result(const onnx::Graph& graph, const std::string& name) {
  return std::any_of(graph.node().begin(), graph.node().end(), [&](const onnx::Node& node) {
    return std::find(node.output().begin(), node.output().end(), name) != node.output().end();
  });
}

// ONNX's outputs are results of nodes: what is an input or a constant is copied, as is what has another name.
void add_output(onnx::Graph& graph, const detail::OnnxGraph& nodes, const Output& output) {
  const std::string& made = nodes.name_of(output);
  std::string name = output.index == 0 ? output.node->name() : output.name();
  if (made != name || !is_result(graph, name)) {
    if (made == name) name += ":output";
    onnx::Node& copy = *graph.add_node();
    copy.set_op_type("Identity");
    copy.set_name(name);
    copy.add_input(made);
    copy.add_output(name);
  }
  describe_value(*graph.add_output(), name, output, false);
}

}  // namespace

std::string onnx_model(const Outputs& outputs, const VariableValue& value) {
  check_outputs(outputs);
  onnx::Model model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("kolo");
  model.set_producer_version(KOLO_VERSION);
  model.add_opset_import()->set_version(kOperatorSet);
  onnx::Graph& graph = *model.mutable_graph();
  graph.set_name("kolo");

  detail::OnnxGraph nodes(graph);
  for (const auto& [id, node] : detail::nodes_behind(outputs)) add_node(graph, nodes, *node, value);
  for (const Output& output : outputs) add_output(graph, nodes, output);

  std::string bytes;
  if (!model.SerializeToString(&bytes))
    throw InvalidArgumentError("the model has {} bytes; ONNX takes fewer than 2 GiB", model.ByteSizeLong());
  return bytes;
}

void write_onnx(const std::string& path, const Outputs& outputs, const VariableValue& value) {
  write_durable_file(path, onnx_model(outputs, value));
}

}  // namespace kolo
