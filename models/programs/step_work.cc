#include <kolo/models/programs/step_work.h>

#include <cstdint>

#include <kolo/core/passes/prune.h>
#include <kolo/core/runtime/step_request.h>

namespace kolo::models {
namespace {

class Work {
 public:
  Work(const StepGraph& graph, const StepNode& node) : graph_(graph), node_(node) {}

  NodeWork of_node() const {
    NodeWork work;
    for (const StepValue in : node_.inputs) work.bytes += bytes(graph_.shape(in), graph_.dtype(in));
    for (std::size_t o = 0; o < node_.shapes.size(); ++o)
      work.bytes += bytes(node_.shapes[o], node_.dtypes[o]);
    work.flops = flops();
    return work;
  }

 private:
  static double elements(const Shape& shape) {
    return shape.is_fully_known() ? static_cast<double>(shape.elements()) : 0;
  }
  static double bytes(const Shape& shape, DType dtype) {
    return elements(shape) * static_cast<double>(size_of(dtype));
  }
  const Shape& input(std::size_t i) const { return graph_.shape(node_.inputs[i]); }

  double flops() const {
    const std::string& op = node_.schema->name();
    if (op == "MatMul" || op == "BatchMatMul") return of_product();
    if (op == "Conv2D") return of_convolution(node_.shapes[0]);
    if (op == "Conv2DBackpropInput" || op == "Conv2DBackpropFilter") return of_convolution(input(2));
    if (op == "Conv2DTranspose") return of_convolution(input(0));
    if (op == "SelfAttention") return of_attention(2);
    if (op == "SelfAttentionGrad") return of_attention(5);
    return 0;
  }

  double of_product() const {
    const Shape& a = input(0);
    if (!a.is_fully_known()) return 0;
    const auto inner = a.dim(node_.attrs.at("transpose_a").get<bool>() ? -2 : -1);
    return 2 * elements(node_.shapes[0]) * static_cast<double>(inner);
  }
  // Each result meets the weights of one filter: input 1 of all passes.
  double of_convolution(const Shape& results) const {
    const Shape& weights = input(1);
    if (elements(weights) == 0) return 0;
    return 2 * elements(results) * elements(weights) / static_cast<double>(weights.dim(0));
  }
  // products: of T · T pairs of places and the width. The gradient makes the scores anew.
  double of_attention(int products) const {
    const Shape& qkv = input(0);
    if (!qkv.is_fully_known()) return 0;
    const auto places = static_cast<double>(qkv.dim(1)),
               others = node_.attrs.at("causal").get<bool>() ? (places + 1) / 2 : places;
    return 2.0 * products * others * elements(qkv) / 3;
  }

  const StepGraph& graph_;
  const StepNode& node_;
};

}  // namespace

std::map<std::string, NodeWork> step_work(const Graph& graph, const std::vector<Fetch>& fetches,
                                          const Feeds& feeds) {
  const StepGraph step =
      prune(kolo::detail::signature_of(kolo::detail::checked_request(graph, fetches, feeds, {})));
  std::map<std::string, NodeWork> work;
  for (const StepNode& node : step.nodes) work[node.name] = Work(step, node).of_node();
  return work;
}

}  // namespace kolo::models
