// A pass: products are marked to be computed in less than f32. Contract: pipeline.h.
#include <algorithm>
#include <array>
#include <string_view>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/onednn_precision.h>
#include <kolo/core/passes/pipeline.h>

namespace kolo {
namespace {

constexpr std::array<std::string_view, 6> kProducts = {
    "MatMul", "BatchMatMul", "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv2DTranspose"};

bool is_product(const StepNode& node) {
  return !node.dtypes.empty() && node.dtypes[0] == DType::f32 &&
         std::find(kProducts.begin(), kProducts.end(), node.schema->name()) != kProducts.end();
}

}  // namespace

std::optional<Precision> precision_named(std::string_view name) {
  if (name == "f32") return Precision::f32;
  if (name == "bf16") return Precision::bf16;
  return std::nullopt;
}

void lower_precision(StepGraph& graph, Precision precision) {
  if (precision == Precision::f32) return;
  detail::check_native_bf16();
  for (StepNode& node : graph.nodes) {
    if (!is_product(node)) continue;
    if (!is_on_cpu(node))
      throw InvalidArgumentError("precision bf16 is for CPUs; {} ({}) lies on {}", node.name,
                                 node.schema->name(), node.device);
    node.attrs.insert_or_assign(detail::kInBf16, true);
  }
}

}  // namespace kolo
