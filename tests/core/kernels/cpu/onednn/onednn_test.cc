#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <kolo/core/graph/gradients.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/convolution.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/pooling.h>
#include <kolo/core/ops/shapes.h>

namespace kolo {
namespace {

// The plain loops have priority 0; the factories of oneDNN's kernels refuse reference implementations.
void expect_no_plain_loop(const Node& node) {
  std::vector<KernelInit::Value> inputs, outputs;
  for (const Output& in : node.inputs()) inputs.push_back({in.dtype(), in.shape()});
  for (int i = 0; i < node.num_outputs(); ++i)
    outputs.push_back({node.output_dtype(i), node.output_shape(i)});
  std::string declined;
  for (const KernelEntry& kernel : kernels_of(node.op())) {
    if (kernel.priority == 0) break;
    KernelInit init(node.name(), node.attrs(), inputs, outputs, 1);
    if (kernel.make(init)) return;
    declined += "\n" + init.decline_reason();
  }
  ADD_FAILURE() << describe(node) << declined;
}

// oneDNN 2.6 generates the gradient of softmax for AVX-512 alone; elsewhere kolo's own loops run.
bool is_generated(std::string_view op) { return op != "SoftmaxGrad" || __builtin_cpu_supports("avx512f"); }

void expect_onednn_for_dense_nodes(const Graph& graph) {
  int dense = 0;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    for (const char* op : {"MatMul", "BiasAdd", "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter",
                           "MaxPool", "MaxPoolGrad", "AvgPool", "AvgPoolGrad", "Softmax", "SoftmaxGrad"})
      if (node.op() == op && is_generated(op)) expect_no_plain_loop(node), ++dense;
  }
  EXPECT_GT(dense, 0);
}

Output weights(Scope& s, Outputs& all, Shape shape) {
  return all.emplace_back(zeros(s, DType::f32, std::move(shape)));
}

TEST(OneDnn, HasKernelsThatAreNoReferenceForEveryLayerOfMlp) {
  for (const std::int64_t batch : {1, 32, 64, 128}) {
    Graph graph;
    Scope s(graph);
    Outputs all;
    Output x = weights(s, all, {batch, 784});
    for (const auto& [in, out] : {std::pair{784, 1024}, std::pair{1024, 1024}, std::pair{1024, 10}})
      x = bias_add(s, matmul(s, x, weights(s, all, {in, out})), weights(s, all, {out}));
    gradients(s, {softmax(s, x)}, all);
    expect_onednn_for_dense_nodes(graph);
  }
}

TEST(OneDnn, HasKernelsThatAreNoReferenceForEveryLayerOfLenet) {
  for (const std::int64_t batch : {1, 32, 64, 128}) {
    Graph graph;
    Scope s(graph);
    Outputs all;
    Output x = weights(s, all, {batch, 1, 28, 28});
    for (const auto& [in, out] : {std::pair{1, 32}, std::pair{32, 64}})
      x = max_pool(s, bias_add(s, conv2d(s, x, weights(s, all, {out, in, 5, 5})), weights(s, all, {out})));
    x = avg_pool(s, x, {.window = {1, 1}, .strides = {1, 1}});
    x = matmul(s, reshape(s, x, {batch, 3136}), weights(s, all, {3136, 1024}));
    x = matmul(s, x, weights(s, all, {1024, 10}));
    gradients(s, {x}, all);
    expect_onednn_for_dense_nodes(graph);
  }
}

}  // namespace
}  // namespace kolo
