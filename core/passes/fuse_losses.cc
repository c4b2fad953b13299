// A pass: cross entropy scales its own gradient. Contract: pipeline.h.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <kolo/core/ops/losses.h>
#include <kolo/core/passes/node_fuser.h>
#include <kolo/core/passes/pipeline.h>

namespace kolo {
namespace {

class LossFuser : NodeFuser {
 public:
  explicit LossFuser(StepGraph& graph) : NodeFuser(graph) {}

  void run() {
    for (const int n : topological_order(graph_))
      if (op(n) == "SparseSoftmaxCrossEntropyWithLogits") take_scale(n);
    graph_.compact(keep_);
  }

 private:
  void take_scale(int n) {
    const int scaled = only_reader({n, 1}, n);
    if (scaled < 0 || op(scaled) != "ScaleRows" || graph_.nodes[scaled].inputs[0] != StepValue{n, 1}) return;
    const auto scale = number(graph_.nodes[scaled].inputs[1]);
    if (!scale) return;
    StepNode& node = graph_.nodes[n];
    node.schema = &find_op(detail::kScaledCrossEntropyOp);
    node.attrs = {{"scale", *scale}};
    infer_outputs(graph_, n);
    keep_[scaled] = false;
    graph_.replace_uses({n, 0}, {n, 1}, scaled);
    graph_.replace_uses({scaled, 0}, {n, 0});
  }

  // The number that all elements of the value are, to the bit; none where that is not known.
  std::optional<double> number(StepValue value) const {
    const StepNode& node = graph_.nodes[value.node];
    if (!node.control_inputs.empty()) return std::nullopt;
    const std::string& name = op(value.node);
    if (name == "OnesLike") return 1;
    if (name == "Fill") return rounded(node.attrs.at("value").get<double>(), node.dtypes[0]);
    if (name == "Const") return number_of(std::get<Tensor>(node.attrs.at("value").value()));
    if (name == "Identity" || name == "Reshape") return number(node.inputs[0]);
    return name == "ReduceSumGrad" ? share(node) : std::nullopt;
  }

  static std::optional<double> number_of(const Tensor& tensor) {
    if (tensor.elements() != 1) return std::nullopt;
    if (tensor.dtype() == DType::f32) return *tensor.data<float>();
    return tensor.dtype() == DType::f64 ? std::optional(*tensor.data<double>()) : std::nullopt;
  }

  static double rounded(double x, DType type) { return type == DType::f32 ? static_cast<float>(x) : x; }

  // What the kernel makes of a gradient that all elements of a sum or mean share.
  std::optional<double> share(const StepNode& node) const {
    const auto dy = number(node.inputs[0]);
    const Shape &summed = node.shapes[0], &sum = graph_.shape(node.inputs[0]);
    if (!dy || !summed.is_fully_known() || !sum.is_fully_known() || sum.elements() == 0) return std::nullopt;
    if (!node.attrs.at("mean").get<bool>()) return dy;
    const std::int64_t count = summed.elements() / sum.elements();
    if (node.dtypes[0] == DType::f32) return static_cast<float>(*dy) / static_cast<float>(count);
    return *dy / static_cast<double>(count);
  }
};

}  // namespace

void fuse_losses(StepGraph& graph, int) { LossFuser(graph).run(); }

}  // namespace kolo
