#include <variant>

#include <kolo/core/graph/graph_def.h>

#include "event_encoding_internal.h"

namespace kolo::detail {
namespace {

// TensorBoard drops attributes that are larger.
constexpr std::size_t kLargestConstant = 1024;

event::DataType type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return event::DT_FLOAT;
    case DType::f64: return event::DT_DOUBLE;
    case DType::i32: return event::DT_INT32;
    case DType::i64: return event::DT_INT64;
    case DType::boolean: return event::DT_BOOL;
    case DType::u8: return event::DT_UINT8;
    case DType::i8: return event::DT_INT8;
    case DType::f16: return event::DT_HALF;
    case DType::bf16: return event::DT_BFLOAT16;
    case DType::string: return event::DT_STRING;
  }
  return event::DT_INVALID;
}

struct AttrEncoder {
  event::AttrValue& message;
  void operator()(bool value) const { message.set_b(value); }
  void operator()(std::int64_t value) const { message.set_i(value); }
  void operator()(double value) const { message.set_f(static_cast<float>(value)); }
  void operator()(const std::string& value) const { message.set_s(value); }
  void operator()(DType value) const { message.set_type(type_of(value)); }
  void operator()(const Shape& value) const { encode(value, *message.mutable_shape()); }
  void operator()(const Tensor& value) const {
    event::TensorProto& tensor = *message.mutable_tensor();
    if (value.dtype() != DType::string && value.bytes() <= kLargestConstant) return encode(value, tensor);
    tensor.set_dtype(type_of(value.dtype()));
    encode(value.shape(), *tensor.mutable_tensor_shape());
  }
  void operator()(const std::vector<std::int64_t>& value) const {
    message.mutable_list()->mutable_i()->Assign(value.begin(), value.end());
  }
  void operator()(const std::vector<std::string>& value) const {
    event::AttrValue::ListValue& list = *message.mutable_list();
    for (const std::string& text : value) list.add_s(text);
  }
};

}  // namespace

void encode(const Shape& shape, event::TensorShapeProto& message) {
  if (!shape.has_rank()) return message.set_unknown_rank(true);
  for (const std::int64_t size : shape.dims()) message.add_dim()->set_size(size);
}

void encode(const Tensor& tensor, event::TensorProto& message) {
  message.set_dtype(type_of(tensor.dtype()));
  encode(tensor.shape(), *message.mutable_tensor_shape());
  if (tensor.dtype() == DType::string)
    for (const std::string& text : tensor.span<std::string>()) message.add_string_val(text);
  else if (tensor.bytes() > 0) message.set_tensor_content(tensor.raw(), tensor.bytes());
}

event::GraphDef encode_graph(const Graph& graph) {
  event::GraphDef message;
  const GraphDef definition = to_graph_def(graph, {.output_shapes = true});
  message.mutable_versions()->set_producer(definition.producer);
  message.mutable_versions()->set_min_consumer(definition.min_consumer);
  for (const NodeDef& node : definition.nodes) {
    event::NodeDef& encoded = *message.add_node();
    encoded.set_name(node.name);
    encoded.set_op(node.op);
    encoded.set_device(node.device);
    for (const std::string& input : node.inputs) encoded.add_input(input);
    auto& attrs = *encoded.mutable_attr();
    for (const auto& [name, value] : node.attrs) std::visit(AttrEncoder{attrs[name]}, value.value());
    for (const Shape& shape : node.output_shapes)
      encode(shape, *attrs["_output_shapes"].mutable_list()->add_shape());
    for (const std::string& group : node.colocation_groups) attrs["_class"].mutable_list()->add_s(group);
  }
  return message;
}

}  // namespace kolo::detail
