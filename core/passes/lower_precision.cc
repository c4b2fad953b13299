// A pass: products are marked to be computed in less than f32. Contract: pipeline.h.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/kernels/cpu/conv/winograd.h>
#include <kolo/core/kernels/cpu/gemm/thin_gemm.h>
#include <kolo/core/kernels/cpu/onednn/native_bf16.h>
#include <kolo/core/kernels/own_kernels.h>
#include <kolo/core/ops/bf16.h>
#include <kolo/core/passes/pipeline.h>

namespace kolo {
namespace {

constexpr std::array<std::string_view, 6> kProducts = {
    "MatMul", "BatchMatMul", "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv2DTranspose"};

bool is_product(const StepNode& node) {
  return !node.dtypes.empty() && node.dtypes[0] == DType::f32 &&
         std::find(kProducts.begin(), kProducts.end(), node.schema->name()) != kProducts.end();
}

bool has_elements(const Shape& shape) { return shape.is_fully_known() && shape.elements() > 0; }

// A value that several matrix products read is rounded once for all of them: a layer's input and its gradient
// are. What a product reads of a variable depends on when it runs: it rounds that itself, which is little.
class SharedFactors {
 public:
  explicit SharedFactors(StepGraph& graph) : graph_(graph) {
    for (const StepNode& node : graph.nodes)
      if (is_matmul(node))
        for (const StepValue factor : node.inputs) ++readers_[factor];
  }

  bool is_matmul(const StepNode& node) const {
    return is_product(node) && node.schema->name() == "MatMul" && has_elements(node.shapes[0]) &&
           has_elements(graph_.shape(node.inputs[0])) && has_elements(graph_.shape(node.inputs[1]));
  }

  void take(int n) {
    StepNode changed = graph_.nodes[n];
    bool some = false;
    for (StepValue& factor : changed.inputs) {
      if (!is_worth_it(factor)) continue;
      factor = rounded(factor);
      some = true;
    }
    if (!some) return;
    changed.schema = &find_op(kBf16MatMulOp);
    changed.attrs.insert_or_assign("shape", changed.shapes[0]);
    graph_.nodes[n] = std::move(changed);
  }

 private:
  bool is_worth_it(StepValue v) const {
    return readers_.at(v) > 1 && is_on_cpu(graph_.nodes[v.node]) &&
           !graph_.nodes[graph_.memory_root(v).node].schema->is_variable_storage();
  }
  StepValue rounded(StepValue v) {
    const auto found = made_.find(v);
    if (found != made_.end()) return found->second;
    const std::string name = graph_.nodes[v.node].name + "/bf16";
    const StepValue result{graph_.add(kToBf16Op, name, {v}, {}, graph_.nodes[v.node].order + 1), 0};
    made_[v] = result;
    return result;
  }

  StepGraph& graph_;
  std::map<StepValue, int> readers_;
  std::map<StepValue, StepValue> made_;
};

// Whether Winograd's algorithm takes the convolution in f32 (conv/winograd.h), where it saves 5 of 9
// multiplications and more.
bool is_for_winograd(const StepGraph& graph, const StepNode& node) {
  const Shape &images = graph.shape(node.inputs[0]), &weights = graph.shape(node.inputs[1]);
  const auto strides = node.attrs.at("strides").get<std::vector<std::int64_t>>();
  const detail::WinogradConvolution convolution{.window = weights.dim(2),
                                                .images = images.dim(0),
                                                .channels = images.dim(1),
                                                .outs = weights.dim(0),
                                                .rows = {},
                                                .cols = {}};
  return convolution.fits() && weights.dim(3) == convolution.window && strides[0] == 1 && strides[1] == 1 &&
         node.attrs.at("groups").get<std::int64_t>() == 1;
}

// Whether the step's convolutions stay in f32, all or none, since images have another order in bf16: where
// more than half of their multiplications are of those that Winograd's algorithm takes, and the processor
// computes these faster than the library's in bf16.
bool keeps_convolutions(const StepGraph& graph) {
  if (!detail::prefers_own(detail::OwnKernel::winograd_for_bf16)) return false;
  double all = 0, by_winograd = 0;
  for (const StepNode& node : graph.nodes) {
    if (!is_product(node) || node.schema->name() != "Conv2D" || !is_on_cpu(node)) continue;
    const Shape& weights = graph.shape(node.inputs[1]);
    if (!has_elements(node.shapes[0]) || !has_elements(weights) || !has_elements(graph.shape(node.inputs[0])))
      return false;
    const std::int64_t of_a_result = weights.elements() / weights.dim(0);
    const double multiplications =
        static_cast<double>(node.shapes[0].elements()) * static_cast<double>(of_a_result);
    all += multiplications;
    if (is_for_winograd(graph, node)) by_winograd += multiplications;
  }
  return by_winograd > all / 2;
}

// Few rows beside a large matrix from memory: to round it costs more than to multiply by it (vgg16's dense
// layers at a batch of 4).
bool is_thin(const StepGraph& graph, const StepNode& node) {
  if (node.schema->name() != "MatMul" || !has_elements(node.shapes[0])) return false;
  const Shape* const shapes[] = {&graph.shape(node.inputs[0]), &graph.shape(node.inputs[1]), &node.shapes[0]};
  std::int64_t least = INT64_MAX, most = 0;
  for (const Shape* shape : shapes) {
    if (!has_elements(*shape) || shape->rank() != 2) return false;
    least = std::min({least, shape->dim(0), shape->dim(1)});
    most = std::max(most, shape->elements());
  }
  return least <= detail::ThinGemm::kMostRows && most >= detail::ThinGemm::kFewestWeights;
}

bool is_convolution(const StepNode& node) { return node.schema->name().starts_with("Conv2D"); }

// PyTorch's rule where nothing is said: convolutions, not matrix products.
void mark_tf32(StepGraph& graph, Precision precision) {
  for (StepNode& node : graph.nodes)
    if (is_product(node) && !is_on_cpu(node) && (precision == Precision::tf32 || is_convolution(node)))
      node.attrs.insert_or_assign(kInTf32, precision == Precision::tf32);
}

}  // namespace

std::optional<Precision> precision_named(std::string_view name) {
  for (const Precision precision : {Precision::automatic, Precision::f32, Precision::tf32, Precision::bf16})
    if (name == precision_name(precision)) return precision;
  return std::nullopt;
}

std::string_view precision_name(Precision precision) {
  switch (precision) {
    case Precision::automatic: return "automatic";
    case Precision::f32: return "f32";
    case Precision::tf32: return "tf32";
    case Precision::bf16: break;
  }
  return "bf16";
}

void lower_precision(StepGraph& graph, Precision precision) {
  if (precision == Precision::f32) return;
  if (precision != Precision::bf16) return mark_tf32(graph, precision);
  bool checked = false;
  int thin = 0;
  const bool keeps = keeps_convolutions(graph);
  SharedFactors shared(graph);
  const int count = static_cast<int>(graph.nodes.size());
  for (int n = 0; n < count; ++n) {
    StepNode& node = graph.nodes[n];
    if (!is_product(node)) continue;
    if (!is_on_cpu(node))
      throw InvalidArgumentError("precision bf16 is for CPUs; {} ({}) lies on {}", node.name,
                                 node.schema->name(), node.device);
    if (!std::exchange(checked, true)) detail::check_native_bf16();
    if (keeps && is_convolution(node)) continue;
    if (is_thin(graph, node)) {
      ++thin;
      continue;
    }
    node.attrs.insert_or_assign(kInBf16, true);
    if (shared.is_matmul(node)) shared.take(n);
  }
  if (keeps)
    log_info("precision bf16: the convolutions stay in f32, where kolo's own are faster on this processor");
  if (thin > 0)
    log_info(
        "precision bf16: in f32 {} of at most {} rows with a large matrix, since rounding the matrix takes "
        "longer",
        count_of(thin, "product"), detail::ThinGemm::kMostRows);
}

}  // namespace kolo
