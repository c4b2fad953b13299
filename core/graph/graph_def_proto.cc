// Graph definitions to and from protobuf messages. Contract: graph_def_internal.h.
#include <kolo/core/graph/graph_def_internal.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/graph_def.h>

namespace kolo::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

constexpr char kColocation[] = "_class";

constexpr std::array<std::pair<DType, proto::DataType>, 10> kTypes = {{
    {DType::f32, proto::DT_FLOAT},
    {DType::f64, proto::DT_DOUBLE},
    {DType::i32, proto::DT_INT32},
    {DType::i64, proto::DT_INT64},
    {DType::boolean, proto::DT_BOOL},
    {DType::u8, proto::DT_UINT8},
    {DType::i8, proto::DT_INT8},
    {DType::f16, proto::DT_HALF},
    {DType::bf16, proto::DT_BFLOAT16},
    {DType::string, proto::DT_STRING},
}};

proto::DataType to_proto(DType dtype) {
  return std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& pair) { return pair.first == dtype; })
      ->second;
}

DType dtype_of(int type) {
  const auto found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& pair) { return pair.second == type; });
  if (found == kTypes.end()) throw DataLossError("{} is the number of no data type", type);
  return found->first;
}

void write(const Shape& shape, proto::ShapeDef& message) {
  if (shape.has_rank()) message.mutable_size()->Assign(shape.dims().begin(), shape.dims().end());
  else message.set_unknown_rank(true);
}

Shape shape_of(const proto::ShapeDef& message) {
  if (message.unknown_rank()) return Shape::unknown_rank();
  if (message.size_size() > kMaxGraphDefRank)
    throw DataLossError("a shape has {} dimensions; at most {} are right", message.size_size(),
                        kMaxGraphDefRank);
  for (const std::int64_t size : message.size())
    if (size < -1) throw DataLossError("a shape has a dimension of {}", size);
  return Shape(std::vector<std::int64_t>(message.size().begin(), message.size().end()));
}

void write(const Tensor& tensor, proto::TensorDef& message) {
  message.set_dtype(to_proto(tensor.dtype()));
  write(tensor.shape(), *message.mutable_shape());
  if (tensor.dtype() == DType::string)
    for (const std::string& text : tensor.span<std::string>()) message.add_string_val(text);
  else if (tensor.bytes() > 0) message.set_content(tensor.raw(), tensor.bytes());
}

// Elements, where their bytes fit in 63 bits.
std::int64_t checked_elements(const Shape& shape, DType dtype) {
  if (!shape.is_fully_known())
    throw DataLossError("a tensor has the shape {}; it must be fully known", shape);
  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  bool overflow = false;
  for (const std::int64_t dim : shape.dims())
    if (dim == 0) return 0;
    else overflow |= __builtin_mul_overflow(bytes, dim, &bytes);
  if (overflow) throw DataLossError("a tensor of shape {} is too large", shape);
  return bytes / static_cast<std::int64_t>(size_of(dtype));
}

Tensor tensor_of(const proto::TensorDef& message) {
  const DType dtype = dtype_of(message.dtype());
  const Shape shape = shape_of(message.shape());
  const std::int64_t elements = checked_elements(shape, dtype);
  const bool is_text = dtype == DType::string;
  // Before any memory is taken for it: the bytes that are there bound it.
  const auto found =
      is_text ? message.string_val_size() : static_cast<std::int64_t>(message.content().size());
  const auto right = is_text ? elements : elements * static_cast<std::int64_t>(size_of(dtype));
  if (found != right)
    throw DataLossError("a tensor of {} {} has {} {}; {} would be right", dtype, shape, found,
                        is_text ? "texts" : "bytes", right);
  Tensor tensor(dtype, shape);
  if (is_text)
    std::copy(message.string_val().begin(), message.string_val().end(), tensor.data<std::string>());
  else if (right > 0) std::memcpy(tensor.raw(), message.content().data(), message.content().size());
  if (dtype == DType::boolean)
    for (const char byte : message.content())
      if (byte != 0 && byte != 1)
        throw DataLossError("a tensor of bool has the byte {}",
                            static_cast<unsigned>(static_cast<unsigned char>(byte)));
  return tensor;
}

proto::AttrValue to_proto(const AttrValue& value) {
  proto::AttrValue message;
  struct {
    proto::AttrValue& message;
    void operator()(bool v) const { message.set_b(v); }
    void operator()(std::int64_t v) const { message.set_i(v); }
    void operator()(double v) const { message.set_f(v); }
    void operator()(const std::string& v) const { message.set_s(v); }
    void operator()(DType v) const { message.set_type(to_proto(v)); }
    void operator()(const Shape& v) const { write(v, *message.mutable_shape()); }
    void operator()(const Tensor& v) const { write(v, *message.mutable_tensor()); }
    void operator()(const std::vector<std::int64_t>& v) const {
      message.mutable_ints()->mutable_i()->Assign(v.begin(), v.end());
    }
    void operator()(const std::vector<std::string>& v) const {
      message.mutable_strings()->mutable_s()->Assign(v.begin(), v.end());
    }
  } const writer{message};
  std::visit(writer, value.value());
  return message;
}

AttrValue attr_of(const proto::AttrValue& message) {
  switch (message.value_case()) {
    case proto::AttrValue::kS: return message.s();
    case proto::AttrValue::kI: return message.i();
    case proto::AttrValue::kB: return message.b();
    case proto::AttrValue::kF: return message.f();
    case proto::AttrValue::kType: return dtype_of(message.type());
    case proto::AttrValue::kShape: return shape_of(message.shape());
    case proto::AttrValue::kTensor: return tensor_of(message.tensor());
    case proto::AttrValue::kInts:
      return std::vector<std::int64_t>(message.ints().i().begin(), message.ints().i().end());
    case proto::AttrValue::kStrings:
      return std::vector<std::string>(message.strings().s().begin(), message.strings().s().end());
    case proto::AttrValue::VALUE_NOT_SET: break;
  }
  throw DataLossError("it has no value that this kolo knows");
}

void write(const NodeDef& node, proto::NodeDef& message) {
  message.set_name(node.name);
  message.set_op(node.op);
  message.mutable_input()->Assign(node.inputs.begin(), node.inputs.end());
  message.set_device(node.device);
  for (const auto& [name, value] : node.attrs) (*message.mutable_attr())[name] = to_proto(value);
  if (!node.colocation_groups.empty())
    (*message.mutable_attr())[kColocation] = to_proto(AttrValue(node.colocation_groups));
  for (const Shape& shape : node.output_shapes) write(shape, *message.add_output_shape());
}

NodeDef node_of(const proto::NodeDef& message) {
  NodeDef node{.name = message.name(),
               .op = message.op(),
               .inputs = {message.input().begin(), message.input().end()},
               .device = message.device(),
               .colocation_groups = {},
               .attrs = {},
               .output_shapes = {}};
  for (const auto& [name, value] : message.attr()) {
    try {
      if (name == kColocation) node.colocation_groups = attr_of(value).get<std::vector<std::string>>();
      else node.attrs.emplace(name, attr_of(value));
    } catch (const Error& error) {
      throw DataLossError("attribute \"{}\": {}", name, error.what());
    }
  }
  for (const auto& shape : message.output_shape()) node.output_shapes.push_back(shape_of(shape));
  return node;
}

}  // namespace

proto::GraphDef to_proto(const GraphDef& definition) {
  proto::GraphDef message;
  message.mutable_versions()->set_producer(definition.producer);
  message.mutable_versions()->set_min_consumer(definition.min_consumer);
  if (definition.seed) message.set_seed(*definition.seed);
  for (const NodeDef& node : definition.nodes) write(node, *message.add_node());
  for (const auto& [name, nodes] : definition.collections) {
    proto::CollectionDef& collection = *message.add_collection();
    collection.set_name(name);
    collection.mutable_node()->Assign(nodes.begin(), nodes.end());
  }
  return message;
}

GraphDef from_proto(const proto::GraphDef& message) {
  // What is written by a newer kolo may mean something else: nothing more is read of it.
  if (message.versions().producer() < 1)
    throw DataLossError("there is no version in it: it is cut short, or no graph definition");
  if (message.versions().min_consumer() > kGraphDefVersion)
    throw FailedPreconditionError(
        "it needs a reader of version {} or newer; this kolo reads up to version {}",
        message.versions().min_consumer(), kGraphDefVersion);
  GraphDef definition;
  definition.producer = message.versions().producer();
  definition.min_consumer = message.versions().min_consumer();
  if (message.has_seed()) definition.seed = message.seed();
  for (const proto::NodeDef& node : message.node()) {
    try {
      definition.nodes.push_back(node_of(node));
    } catch (const Error& error) {
      throw DataLossError("node \"{}\": {}", node.name(), error.what());
    }
  }
  for (const proto::CollectionDef& collection : message.collection()) {
    auto& nodes = definition.collections[collection.name()];
    nodes.insert(nodes.end(), collection.node().begin(), collection.node().end());
  }
  return definition;
}

}  // namespace kolo::detail
