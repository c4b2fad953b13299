// How an error shows a node, as TensorFlow 1 does. Contract: placer.h.
#include <fmt/format.h>

#include <cctype>

#include <kolo/core/passes/placer.h>

namespace kolo {
namespace {

std::string quoted(const std::string& text) { return '"' + text + '"'; }

template <typename T>
std::string elements(const Tensor& tensor) {
  constexpr std::int64_t kShown = 4;
  std::string text;
  for (std::int64_t i = 0; i < std::min(kShown, tensor.elements()); ++i) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      text += fmt::format("{}{}", i == 0 ? "" : " ", static_cast<float>(tensor.data<T>()[i]));
    else text += fmt::format("{}{}", i == 0 ? "" : " ", tensor.data<T>()[i]);
  }
  return text + (tensor.elements() > kShown ? "..." : "");
}

std::string values(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::f32: return elements<float>(tensor);
    case DType::f64: return elements<double>(tensor);
    case DType::i32: return elements<std::int32_t>(tensor);
    case DType::i64: return elements<std::int64_t>(tensor);
    case DType::boolean: return elements<bool>(tensor);
    case DType::u8: return elements<std::uint8_t>(tensor);
    case DType::i8: return elements<std::int8_t>(tensor);
    case DType::f16: return elements<Half>(tensor);
    case DType::bf16: return elements<BFloat16>(tensor);
    case DType::string: return elements<std::string>(tensor);
  }
  return "";
}

struct AttrText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(DType value) const { return tf_enum_name(value); }
  std::string operator()(const Shape& value) const { return fmt::format("{}", value); }
  std::string operator()(const Tensor& value) const {
    if (!value) return "Tensor<empty>";
    return fmt::format("Tensor<type: {} shape: {} values: {}>", tf_name(value.dtype()), value.shape(),
                       values(value));
  }
  std::string operator()(const std::vector<std::int64_t>& value) const {
    return fmt::format("[{}]", fmt::join(value, ", "));
  }
  std::string operator()(const std::vector<std::string>& value) const {
    std::string text;
    for (const auto& v : value) text += (text.empty() ? "" : ", ") + quoted(v);
    return "[" + text + "]";
  }
};

}  // namespace

std::string node_summary(const std::vector<PlacerNode>& nodes, int index) {
  const PlacerNode& node = nodes[index];
  std::string attrs, inputs;
  const auto append = [](std::string& list, const std::string& text) {
    list += (list.empty() ? "" : ", ") + text;
  };
  if (node.attrs != nullptr)
    for (const auto& [name, value] : *node.attrs)
      append(attrs, name + "=" + std::visit(AttrText(), value.value()));
  if (!node.colocation_groups.empty()) append(attrs, "_class=" + AttrText()(node.colocation_groups));
  if (!node.requested_device.empty()) append(attrs, "_device=" + quoted(node.requested_device));
  for (const StepValue in : node.inputs) {
    const std::string from = in.node < 0 ? "?" : nodes[in.node].name;
    append(inputs, in.output == 0 ? from : fmt::format("{}:{}", from, in.output));
  }
  for (const int before : node.control_inputs) append(inputs, "^" + nodes[before].name);
  return fmt::format("[[Node: {} = {}[{}]({})]]", node.name, node.schema->name(), attrs, inputs);
}

}  // namespace kolo
