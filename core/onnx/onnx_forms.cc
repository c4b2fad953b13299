#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/registry.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/kernels/elements/table.h>
#include <kolo/core/onnx/onnx_model.h>

#include "onnx_forms_internal.h"

namespace kolo {
namespace detail {

Names inputs_of(const OnnxGraph& g, const Node& node) {
  Names names;
  for (const Output& in : node.inputs()) names.push_back(g.name_of(in));
  return names;
}

int known_rank(const Node& node, int input) {
  const Shape& shape = node.input(input).shape();
  if (!shape.has_rank())
    throw UnimplementedError("{}: the number of dimensions of {} must be known for ONNX", describe(node),
                             node.input(input).name());
  return shape.rank();
}

std::int64_t known_size(const Node& node, int input, int axis) {
  const Shape& shape = node.input(input).shape();
  if (known_rank(node, input) <= axis || shape.dim(axis) < 0)
    throw UnimplementedError("{}: dimension {} of {}, {}, must be known for ONNX", describe(node), axis,
                             node.input(input).name(), shape);
  return shape.dim(axis);
}

namespace {

/// Adds nodes; gives the name of each output that has one there.
using Form = std::function<Names(OnnxGraph& g, const Node& node)>;

Form same_as(const char* op) {
  return [op](OnnxGraph& g, const Node& node) -> Names { return {g.add(op, inputs_of(g, node))}; };
}

// With all of the node's attributes, which have the same names and meanings.
Form same_with_attributes(const char* op) {
  return
      [op](OnnxGraph& g, const Node& node) -> Names { return {g.add(op, inputs_of(g, node), node.attrs())}; };
}

Names pass(OnnxGraph& g, const Node& node) { return {g.name_of(node.input(0))}; }

Names square(OnnxGraph& g, const Node& node) {
  const std::string x = g.name_of(node.input(0));
  return {g.add("Mul", {x, x})};
}

Names rsqrt(OnnxGraph& g, const Node& node) {
  return {g.add("Reciprocal", {g.add("Sqrt", inputs_of(g, node))})};
}

Names swish(OnnxGraph& g, const Node& node) {
  const std::string x = g.name_of(node.input(0));
  return {g.add("Mul", {x, g.add("Sigmoid", {x})})};
}

Names relu6(OnnxGraph& g, const Node& node) {
  const DType dtype = node.output_dtype(0);
  return {g.add("Clip", {g.name_of(node.input(0)), g.scalar(dtype, 0), g.scalar(dtype, 6)})};
}

// x/2 · (1 + curve).
std::string half_of_one_and(OnnxGraph& g, DType dtype, const std::string& x, const std::string& curve) {
  const std::string sum = g.add("Add", {curve, g.scalar(dtype, 1)});
  return g.add("Mul", {g.add("Mul", {x, g.scalar(dtype, 0.5)}), sum});
}

Names gelu(OnnxGraph& g, const Node& node) {
  const DType dtype = node.output_dtype(0);
  const std::string x = g.name_of(node.input(0));
  const std::string scaled = g.add("Mul", {x, g.scalar(dtype, std::numbers::sqrt2 / 2)});
  return {half_of_one_and(g, dtype, x, g.add("Erf", {scaled}))};
}

Names gelu_tanh(OnnxGraph& g, const Node& node) {
  const DType dtype = node.output_dtype(0);
  const std::string x = g.name_of(node.input(0));
  const std::string cube = g.add("Mul", {g.add("Mul", {x, x}), x});
  const std::string sum = g.add("Add", {x, g.add("Mul", {cube, g.scalar(dtype, 0.044715)})});
  const std::string scaled = g.add("Mul", {sum, g.scalar(dtype, std::sqrt(2 / std::numbers::pi))});
  return {half_of_one_and(g, dtype, x, g.add("Tanh", {scaled}))};
}

// The last two dimensions change places.
std::string transposed(OnnxGraph& g, const std::string& x, int rank) {
  Numbers perm(static_cast<std::size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return g.add("Transpose", {x}, {{"perm", perm}});
}

Names matmul(OnnxGraph& g, const Node& node) {
  Names factors = inputs_of(g, node);
  if (node.attr<bool>("transpose_a")) factors[0] = transposed(g, factors[0], known_rank(node, 0));
  if (node.attr<bool>("transpose_b")) factors[1] = transposed(g, factors[1], known_rank(node, 1));
  return {g.add("MatMul", factors)};
}

Names bias_add(OnnxGraph& g, const Node& node) {
  Names terms = inputs_of(g, node);
  if (known_rank(node, 0) == 4 && node.attr<std::string>("data_format") == "NCHW")
    terms[1] = g.add("Unsqueeze", {terms[1], g.numbers({1, 2})});
  return {g.add("Add", terms)};
}

Names batch_norm(OnnxGraph& g, const Node& node) {
  return {g.add("BatchNormalization", inputs_of(g, node), {{"epsilon", node.attr("epsilon")}})};
}

Names layer_norm(OnnxGraph& g, const Node& node) {
  return {g.add("LayerNormalization", inputs_of(g, node), {{"axis", -1}, {"epsilon", node.attr("epsilon")}})};
}

// Of a place and those before it 0, of those behind it −∞.
Tensor causal_mask(DType dtype, std::int64_t places) {
  Tensor mask = Tensor::zeros(dtype, {places, places});
  const auto fill = [&]<typename T>(std::span<T> cells) {
    for (std::int64_t row = 0; row < places; ++row)
      std::fill(cells.begin() + row * places + row + 1, cells.begin() + (row + 1) * places,
                -std::numeric_limits<T>::infinity());
  };
  if (dtype == DType::f32) fill(mask.span<float>());
  else fill(mask.span<double>());
  return mask;
}

// From [N,T,width] to [N,heads,…]; perm: of N, T, heads, size.
std::string by_heads(OnnxGraph& g, const std::string& x, std::int64_t heads, std::int64_t size,
                     const Numbers& perm) {
  // 0: as it is.
  return g.add("Transpose", {g.add("Reshape", {x, g.numbers({0, 0, heads, size})})}, {{"perm", perm}});
}

Names self_attention(OnnxGraph& g, const Node& node) {
  const DType dtype = node.output_dtype(0);
  const std::int64_t heads = node.attr<std::int64_t>("heads"), width = known_size(node, 0, 2) / 3;
  const Names qkv = g.add_with_outputs("Split", {g.name_of(node.input(0)), g.numbers({width, width, width})},
                                       {{"axis", 2}}, 3);
  const std::int64_t size = width / heads;
  const std::string q = by_heads(g, qkv[0], heads, size, {0, 2, 1, 3});
  const std::string k = by_heads(g, qkv[1], heads, size, {0, 2, 3, 1});
  const std::string v = by_heads(g, qkv[2], heads, size, {0, 2, 1, 3});
  const double scale = 1 / std::sqrt(static_cast<double>(size));
  std::string scores = g.add("Mul", {g.add("MatMul", {q, k}), g.scalar(dtype, scale)});
  if (node.attr<bool>("causal"))
    scores = g.add("Add", {scores, g.constant(causal_mask(dtype, known_size(node, 0, 1)))});
  const std::string seen = g.add("MatMul", {g.add("Softmax", {scores}, {{"axis", -1}}), v});
  const std::string rows = g.add("Transpose", {seen}, {{"perm", Numbers{0, 2, 1, 3}}});
  return {g.add("Reshape", {rows, g.numbers({0, 0, width})})};
}

// ONNX broadcasts by the last dimensions; a vector that chooses rows has no such form.
Names select(OnnxGraph& g, const Node& node) {
  if (known_rank(node, 0) != 0 && known_rank(node, 0) != known_rank(node, 1))
    throw UnimplementedError("{}: a condition {} for values {} has no form in ONNX", describe(node),
                             node.input(0).shape(), node.input(1).shape());
  return {g.add("Where", inputs_of(g, node))};
}

Names tile(OnnxGraph& g, const Node& node) {
  return {g.add("Tile", {g.name_of(node.input(0)), g.numbers(node.attr<Numbers>("multiples"))})};
}

Names cast(OnnxGraph& g, const Node& node) {
  return {g.add("Cast", inputs_of(g, node), {{"to", node.output_dtype(0)}})};
}

Names reduction(OnnxGraph& g, const Node& node) {
  const auto axes = node.attr<Numbers>("axes");
  AttrMap attrs{{"keepdims", node.attr<bool>("keep_dims")}};
  Names in = inputs_of(g, node);
  // ONNX's sum takes as an input what the others have as an attribute.
  if (node.op() == "ReduceSum" && !axes.empty()) in.push_back(g.numbers(axes));
  else if (!axes.empty()) attrs.emplace("axes", axes);
  return {g.add(node.op(), in, attrs)};
}

Names constant(OnnxGraph& g, const Node& node) {
  return {g.constant(node.name(), node.attr<Tensor>("value"))};
}

Names filled(OnnxGraph& g, const Node& node) {
  const std::string value = g.scalar(node.output_dtype(0), node.attr<double>("value"));
  return {g.add("Expand", {value, g.numbers(node.attr<Shape>("shape").dims())})};
}

std::map<std::string, Form> make_forms() {
  std::map<std::string, Form> made = {
      {"AvgPool", pool},
      {"BatchMatMul", matmul},
      {"BatchNormInference", batch_norm},
      {"BiasAdd", bias_add},
      {"Cast", cast},
      {"Const", constant},
      {"Conv2D", conv2d},
      {"Conv2DTranspose", conv2d_transpose},
      {"ExpandDims", expand_dims},
      {"Fill", filled},
      {"Gelu", gelu},
      {"GeluTanh", gelu_tanh},
      {"Identity", pass},
      {"LayerNorm", layer_norm},
      {"MatMul", matmul},
      {"MaxPool", pool},
      {"Pad", pad},
      {"Relu6", relu6},
      {"Reshape", reshape},
      {"ReshapeLike", reshape_like},
      {"Resize", resize},
      {"Rsqrt", rsqrt},
      {"Select", select},
      {"SelfAttention", self_attention},
      {"Slice", slice},
      {"Split", split},
      {"Square", square},
      {"Squeeze", squeeze},
      {"StopGradient", pass},
      {"StridedSlice", strided_slice},
      {"Swish", swish},
      {"Tile", tile},
  };
  for (const char* op : {"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"})
    made[op] = reduction;
  for (const char* op : {"Selu", "Softplus"}) made[op] = same_as(op);
  for (const char* op : {"Concat", "Elu", "Gather", "LeakyRelu", "LogSoftmax", "Softmax", "Transpose"})
    made[op] = same_with_attributes(op);
  const auto add_row = [&](auto row) {
    using Op = typename decltype(row)::type;
    if constexpr (Op::kOnnx != nullptr) made.emplace(Op::kName, same_as(Op::kOnnx));
  };
  elements::UnaryOps::each(add_row);
  elements::BinaryOps::each(add_row);
  return made;
}

const std::map<std::string, Form>& forms() {
  static const std::map<std::string, Form> all = make_forms();
  return all;
}

Registry<OnnxForm>& own_forms() {
  static Registry<OnnxForm> all("form in ONNX of op");
  return all;
}

}  // namespace

void add_onnx_form(OnnxGraph& graph, const Node& node) {
  const auto form = forms().find(node.op());
  const OnnxForm* const own = own_forms().find(node.op());
  if (form == forms().end() && own == nullptr)
    throw UnimplementedError(
        "{}: the op has no form in ONNX here; those of {} have one; RegisterOnnxForm gives "
        "another one",
        describe(node), fmt::join(onnx_ops(), ", "));
  graph.begin(node);
  OnnxNode itself(graph, node);
  const Names results = own != nullptr ? (*own)(itself) : form->second(graph, node);
  for (std::size_t i = 0; i < results.size(); ++i)
    graph.set_name(node.output(static_cast<int>(i)), graph.end(results[i]));
}

}  // namespace detail

std::vector<std::string> onnx_ops() {
  std::vector<std::string> ops;
  for (const auto& [op, form] : detail::forms()) ops.push_back(op);
  for (const std::string& op : detail::own_forms().names()) ops.push_back(op);
  std::sort(ops.begin(), ops.end());
  return ops;
}

std::string OnnxNode::input(int i) const { return graph_.name_of(node_.input(i)); }
std::vector<std::string> OnnxNode::inputs() const { return detail::inputs_of(graph_, node_); }
std::string OnnxNode::add(const std::string& op, const std::vector<std::string>& inputs,
                          const AttrMap& attrs) {
  return graph_.add(op, inputs, attrs);
}
std::string OnnxNode::constant(const Tensor& value) { return graph_.constant(value); }

RegisterOnnxForm::RegisterOnnxForm(const std::string& op, OnnxForm form, SourceLine place) {
  if (detail::forms().contains(op))
    throw InternalError("form in ONNX of op \"{}\" is registered twice: by kolo and {}", op, place.text());
  detail::own_forms().add(op, std::move(form), place);
}

}  // namespace kolo
