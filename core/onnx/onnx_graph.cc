#include <fmt/format.h>

#include <type_traits>
#include <variant>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/graph.h>

#include "onnx_graph_internal.h"

namespace kolo::detail {
namespace {

struct AttributeWriter {
  onnx::Attribute& attribute;

  void operator()(std::int64_t value) const {
    attribute.set_type(onnx::Attribute::INT);
    attribute.set_i(value);
  }
  void operator()(bool value) const { (*this)(std::int64_t{value}); }
  void operator()(DType value) const { (*this)(std::int64_t{onnx_type(value)}); }
  void operator()(double value) const {
    attribute.set_type(onnx::Attribute::FLOAT);
    attribute.set_f(static_cast<float>(value));
  }
  void operator()(const std::string& value) const {
    attribute.set_type(onnx::Attribute::STRING);
    attribute.set_s(value);
  }
  void operator()(const std::vector<std::int64_t>& values) const {
    attribute.set_type(onnx::Attribute::INTS);
    attribute.mutable_ints()->Add(values.begin(), values.end());
  }
  template <typename Other>
  requires(std::is_same_v<Other, Shape> || std::is_same_v<Other, Tensor> ||
           std::is_same_v<Other, std::vector<std::string>>) void
  operator()(const Other&) const {
    throw InternalError("the attribute \"{}\" of an op of ONNX is no number or text", attribute.name());
  }
};

}  // namespace

onnx::Tensor::DataType onnx_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return onnx::Tensor::FLOAT;
    case DType::f64: return onnx::Tensor::DOUBLE;
    case DType::i32: return onnx::Tensor::INT32;
    case DType::i64: return onnx::Tensor::INT64;
    case DType::boolean: return onnx::Tensor::BOOL;
    case DType::u8: return onnx::Tensor::UINT8;
    case DType::i8: return onnx::Tensor::INT8;
    case DType::f16: return onnx::Tensor::FLOAT16;
    case DType::bf16: return onnx::Tensor::BFLOAT16;
    case DType::string: return onnx::Tensor::STRING;
  }
  return onnx::Tensor::UNDEFINED;
}

void OnnxGraph::begin(const Node& node) {
  node_ = &node;
  taken_.clear();
}

std::string OnnxGraph::end(const std::string& result) {
  if (graph_.node_size() == 0) return result;
  onnx::Node& last = *graph_.mutable_node(graph_.node_size() - 1);
  if (last.output_size() != 1 || last.output(0) != result || !result.starts_with(node_->name() + ":"))
    return result;
  last.set_name(node_->name());
  last.set_output(0, node_->name());
  return node_->name();
}

std::string OnnxGraph::unique(const std::string& what) {
  const int before = taken_[what]++;
  return before == 0 ? fmt::format("{}:{}", node_->name(), what)
                     : fmt::format("{}:{}_{}", node_->name(), what, before);
}

std::string OnnxGraph::add(const std::string& op, const Names& inputs, const AttrMap& attrs) {
  return add_with_outputs(op, inputs, attrs, 1).front();
}

OnnxGraph::Names OnnxGraph::add_with_outputs(const std::string& op, const Names& inputs, const AttrMap& attrs,
                                             int outputs) {
  onnx::Node& node = *graph_.add_node();
  node.set_op_type(op);
  node.mutable_input()->Add(inputs.begin(), inputs.end());
  Names names;
  for (int i = 0; i < outputs; ++i) names.push_back(unique(op));
  node.set_name(names.front());
  node.mutable_output()->Add(names.begin(), names.end());
  for (const auto& [name, value] : attrs) {
    onnx::Attribute& attribute = *node.add_attribute();
    attribute.set_name(name);
    std::visit(AttributeWriter{attribute}, value.value());
  }
  return names;
}

std::string OnnxGraph::constant(const std::string& name, const Tensor& value) {
  if (value.dtype() == DType::string)
    throw UnimplementedError("\"{}\" holds texts, which are not written as ONNX", name);
  onnx::Tensor& tensor = *graph_.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx_type(value.dtype()));
  tensor.mutable_dims()->Add(value.shape().dims().begin(), value.shape().dims().end());
  tensor.set_raw_data(value.raw(), value.bytes());
  return name;
}

std::string OnnxGraph::constant(const Tensor& value) { return constant(unique("constant"), value); }

std::string OnnxGraph::numbers(const std::vector<std::int64_t>& values) {
  return constant(Tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
}

std::string OnnxGraph::scalar(DType dtype, double value) {
  if (dtype == DType::f32) return constant(Tensor::scalar(static_cast<float>(value)));
  if (dtype == DType::f64) return constant(Tensor::scalar(value));
  throw UnimplementedError("{} computes with {}; ONNX export does with f32 and f64", describe(*node_), dtype);
}

const std::string& OnnxGraph::name_of(const Output& value) const {
  const auto found = names_.find({value.node, value.index});
  if (found == names_.end())
    throw UnimplementedError("{} of {} has no form in ONNX", value.name(), describe(*value.node));
  return found->second;
}

}  // namespace kolo::detail
