#include <kolo/core/passes/gradient_product.h>

#include <algorithm>

#include <kolo/core/ops/bf16.h>

namespace kolo {

bool has_attrs_of_gradient(const AttrMap& attrs) {
  return attrs.at("transpose_a").get<bool>() && !attrs.at("transpose_b").get<bool>();
}

bool is_gradient_product(const StepGraph& graph, const StepNode& node) {
  if (node.schema->name() != "MatMul" || node.attrs.count(kInBf16) > 0 || !is_on_cpu(node) ||
      !has_attrs_of_gradient(node.attrs))
    return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](StepValue factor) {
    return graph.dtype(factor) == DType::f32 && graph.shape(factor).is_fully_known() &&
           graph.shape(factor).rank() == 2;
  });
}

}  // namespace kolo
