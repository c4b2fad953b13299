// A pass: chains of convolutions and what stands between them go through the step in blocked order. Contract:
// pipeline.h.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/kernels/cpu/conv/image_blocks.h>
#include <kolo/core/kernels/element_program.h>
#include <kolo/core/ops/bf16.h>
#include <kolo/core/ops/blocked.h>
#include <kolo/core/passes/cpu_kernels.h>
#include <kolo/core/passes/pipeline.h>

namespace kolo {
namespace {

class Layout {
 public:
  // block: as nodes have it. Of `channels` an image's are a multiple.
  Layout(StepGraph& graph, int threads, std::int64_t block, std::int64_t channels)
      : graph_(graph), threads_(threads), block_(block), channels_(channels), users_(graph.users()) {
    for (const StepValue fetch : graph.fetches)
      if (fetch.node >= 0) fetched_.insert(fetch);
  }

  void run() {
    for (const int n : topological_order(graph_))
      if (!becomes_blocked(n)) read_row_major(n);
    for (StepValue& fetch : graph_.fetches)
      if (fetch.node >= 0) fetch = row_major(fetch);
  }

 private:
  // How an op becomes blocked; false where it cannot.
  using Rule = bool (Layout::*)(int n);

  bool becomes_blocked(int n) {
    static const std::map<std::string, Rule> rules = {
        {"Conv2D", &Layout::convolution},
        {"Conv2DBackpropInput", &Layout::convolution_images},
        {"Conv2DBackpropFilter", &Layout::convolution_weights},
        {"BatchNorm", &Layout::batch_norm},
        {"BatchNormGrad", &Layout::batch_norm_grad},
        {"BatchNormInference", &Layout::batch_norm_inference},
        {"MaxPool", &Layout::max_pool},
        {"MaxPoolGrad", &Layout::max_pool_grad},
        {"AvgPool", &Layout::avg_pool},
        {"AvgPoolGrad", &Layout::avg_pool_grad},
        {"BiasAdd", &Layout::bias_add},
        {"BiasAddGrad", &Layout::bias_add_grad},
        {"Pad", &Layout::pad},
        {"StridedSlice", &Layout::slice},
        {"Identity", &Layout::keeps_order},
        {"StopGradient", &Layout::keeps_order},
    };
    const StepNode& node = graph_.nodes[n];
    if (!is_on_cpu(node) || node.dtypes.empty() || node.dtypes[0] != DType::f32) return false;
    const bool stays_on_device = std::all_of(node.inputs.begin(), node.inputs.end(), [&](StepValue in) {
      return graph_.nodes[in.node].device == node.device;
    });
    if (!stays_on_device) return false;
    const auto rule = rules.find(node.schema->name());
    if (rule != rules.end()) return (this->*rule->second)(n);
    return is_element_op(node.schema->name(), DType::f32) && elementwise(n);
  }

  // Convolutions are where blocked order begins. Each of their two sides has it if its channels allow that.

  bool convolution(int n) {
    const StepNode& node = graph_.nodes[n];
    return convolution_as(n, kBlockedConv2dOp, {0, 1}, node.inputs[0], StepValue{n, 0});
  }
  bool convolution_images(int n) {
    const StepNode& node = graph_.nodes[n];
    return convolution_as(n, kBlockedConv2dImagesOp, {1, 2}, StepValue{n, 0}, node.inputs[2]);
  }
  bool convolution_weights(int n) {
    const StepNode& node = graph_.nodes[n];
    return convolution_as(n, kBlockedConv2dWeightsOp, {0, 2}, node.inputs[0], node.inputs[2]);
  }

  // read: those of the node's inputs that are more than a shape.
  bool convolution_as(int n, const char* op, const std::vector<int>& read, StepValue images,
                      StepValue results) {
    StepNode changed = graph_.nodes[n];
    const std::int64_t images_block = can_be_blocked(images, n) ? block_ : 0,
                       results_block = can_be_blocked(results, n) ? block_ : 0;
    if (images_block == 0 && results_block == 0) return false;
    changed.schema = &find_op(op);
    changed.inputs.clear();
    for (const int i : read) changed.inputs.push_back(input(n, i));
    changed.attrs.insert_or_assign("images_block", images_block);
    changed.attrs.insert_or_assign("results_block", results_block);
    changed.attrs.insert_or_assign("shape", changed.shapes[0]);
    changed.attrs.insert_or_assign("type", DType::f32);
    if (!has_cpu_kernel(graph_, changed, threads_)) return false;
    const auto lies_in_blocks = [&](StepValue v) {
      return (v == images && images_block != 0) || (v == results && results_block != 0);
    };
    for (StepValue& in : changed.inputs) in = lies_in_blocks(in) ? blocked(in) : row_major(in);
    graph_.nodes[n] = std::move(changed);
    if (lies_in_blocks({n, 0})) in_blocks_.insert({n, 0});
    return true;
  }

  // The others take the order of what they read.

  bool batch_norm(int n) {
    return is_in_blocks(input(n, 0)) && become(n, kBlockedBatchNormOp, {0, 1, 2, 3, 4}, {0}, 1);
  }
  bool batch_norm_grad(int n) {
    return is_in_blocks(input(n, 0)) && can_be_blocked(input(n, 4), n) &&
           become(n, kBlockedBatchNormGradOp, {0, 1, 2, 3, 4}, {0, 4}, 1);
  }
  bool batch_norm_inference(int n) {
    return is_in_blocks(input(n, 0)) && become(n, kBlockedBatchNormInferenceOp, {0, 1, 2, 3, 4}, {0}, 1);
  }

  // Cells have an order that their gradient alone understands.
  bool max_pool(int n) {
    if (!is_in_blocks(input(n, 0)) || graph_.nodes[n].dtypes[1] != DType::u8) return false;
    const StepValue cells{n, 1};
    const bool is_known_to_gradients =
        fetched_.count(cells) == 0 && std::all_of(users_[n].begin(), users_[n].end(), [&](int user) {
          const StepNode& reader = graph_.nodes[user];
          if (std::find(reader.inputs.begin(), reader.inputs.end(), cells) == reader.inputs.end())
            return true;
          return reader.schema->name() == "MaxPoolGrad" && reader.device == graph_.nodes[n].device &&
                 can_be_blocked(reader.inputs[2], user);
        });
    return is_known_to_gradients && become(n, kBlockedMaxPoolOp, {0}, {0}, 2);
  }
  bool max_pool_grad(int n) {
    return is_in_blocks(input(n, 1)) && become(n, kBlockedMaxPoolGradOp, {1, 2}, {1}, 1);
  }
  bool avg_pool(int n) { return is_in_blocks(input(n, 0)) && become(n, kBlockedAvgPoolOp, {0}, {0}, 1); }
  bool avg_pool_grad(int n) {
    return is_in_blocks(input(n, 0)) && can_be_blocked(input(n, 1), n) &&
           become(n, kBlockedAvgPoolGradOp, {1}, {0}, 1);
  }

  // Of rows and columns.
  bool pad(int n) { return is_in_blocks(input(n, 0)) && become(n, kBlockedPadOp, {0}, {0}, 1); }
  bool slice(int n) { return is_in_blocks(input(n, 0)) && become(n, kBlockedSliceOp, {0}, {0}, 1); }

  bool bias_add(int n) {
    return is_nchw(n) && is_in_blocks(input(n, 0)) && become(n, kBlockedBiasAddOp, {0, 1}, {0}, 1);
  }
  bool bias_add_grad(int n) {
    return is_nchw(n) && is_in_blocks(input(n, 0)) && become(n, kBlockedBiasAddGradOp, {0}, {0}, 0);
  }

  bool keeps_order(int n) {
    if (!is_in_blocks(input(n, 0))) return false;
    in_blocks_.insert({n, 0});
    return true;
  }

  // Of tensors of one shape, and scalars.
  bool elementwise(int n) {
    const StepNode& node = graph_.nodes[n];
    if (node.dtypes.size() != 1) return false;
    bool some = false;
    for (const StepValue in : node.inputs) {
      if (is_in_blocks(in)) some = true;
      if (graph_.shape(in) == node.shapes[0] ? !can_be_blocked(in, n) : !is_scalar(graph_.shape(in)))
        return false;
    }
    if (!some) return false;
    const std::size_t count = node.inputs.size();
    for (std::size_t i = 0; i < count; ++i)
      if (graph_.shape(input(n, i)) == graph_.nodes[n].shapes[0]) set_input(n, i, blocked(input(n, i)));
    in_blocks_.insert({n, 0});
    return true;
  }

  // The node is one of the blocked `op`, which reads the inputs `read`; of these `images` are blocked, and so
  // are its first `results` outputs.
  bool become(int n, const char* op, const std::vector<int>& read, const std::vector<int>& images,
              int results) {
    StepNode changed = graph_.nodes[n];
    changed.schema = &find_op(op);
    changed.inputs.clear();
    for (const int i : read) changed.inputs.push_back(input(n, i));
    changed.attrs.insert_or_assign("block", block_);
    if (changed.schema->attrs().count("shape") > 0)
      changed.attrs.insert_or_assign("shape", changed.shapes[0]);
    for (const auto& [name, spec] : changed.schema->attrs()) changed.attrs.emplace(name, spec.value);
    if (!has_cpu_kernel(graph_, changed, threads_)) return false;
    for (const int i : images) changed.inputs[i] = blocked(changed.inputs[i]);
    graph_.nodes[n] = std::move(changed);
    for (int o = 0; o < results; ++o) in_blocks_.insert({n, o});
    return true;
  }

  void read_row_major(int n) {
    if (graph_.nodes[n].schema->is_metadata()) return;  // of the shape alone
    for (std::size_t i = 0; i < graph_.nodes[n].inputs.size(); ++i) set_input(n, i, row_major(input(n, i)));
  }

  StepValue input(int n, std::size_t i) const { return graph_.nodes[n].inputs[i]; }
  void set_input(int n, std::size_t i, StepValue v) { graph_.nodes[n].inputs[i] = v; }
  bool is_in_blocks(StepValue v) const { return in_blocks_.count(v) > 0; }
  static bool is_scalar(const Shape& shape) { return shape.is_fully_known() && shape.elements() == 1; }
  bool is_nchw(int n) const {
    const StepNode& node = graph_.nodes[n];
    return graph_.shape(node.inputs[0]).rank() == 4 &&
           node.attrs.at("data_format").get<std::string>() == "NCHW";
  }

  // Node `n` can read or make the value in blocked order. What a reorder of a variable would see depends on
  // when it runs: those stay as they are.
  bool can_be_blocked(StepValue v, int n) const {
    const Shape& shape = graph_.shape(v);
    if (is_in_blocks(v)) return true;
    return graph_.dtype(v) == DType::f32 && shape.has_rank() && shape.rank() == 4 && shape.is_fully_known() &&
           shape.elements() > 0 && shape.dim(1) % channels_ == 0 &&
           (v.node == n || !graph_.nodes[graph_.memory_root(v).node].schema->is_variable_storage());
  }

  StepValue blocked(StepValue v) {
    return is_in_blocks(v) ? v : reordered(v, kToBlockedOp, "/blocked", made_blocked_);
  }
  StepValue row_major(StepValue v) {
    return is_in_blocks(v) ? reordered(v, kToRowMajorOp, "/row_major", made_row_major_) : v;
  }
  // Right behind what makes the value, while it is in the cache; once for all who read it.
  StepValue reordered(StepValue v, const char* op, const char* suffix, std::map<StepValue, StepValue>& made) {
    const auto found = made.find(v);
    if (found != made.end()) return found->second;
    const std::string name = graph_.nodes[v.node].name + suffix;
    const StepValue result{graph_.add(op, name, {v}, {{"block", block_}}, graph_.nodes[v.node].order + 1), 0};
    if (op == std::string(kToBlockedOp)) in_blocks_.insert(result);
    made[v] = result;
    return result;
  }

  StepGraph& graph_;
  int threads_;
  std::int64_t block_;
  std::int64_t channels_;
  std::vector<std::vector<int>> users_;  // of the nodes that were there before
  std::set<StepValue> fetched_;
  std::set<StepValue> in_blocks_;
  std::map<StepValue, StepValue> made_blocked_, made_row_major_;
};

}  // namespace

void layout(StepGraph& graph, int threads) {
  const auto some_convolution = [&](const auto& is_meant) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const StepNode& node) {
      return node.schema->name().starts_with("Conv2D") && is_meant(node);
    });
  };
  const std::int64_t channels = image_block();
  if (channels == 0 || !some_convolution([](const StepNode&) { return true; })) return;
  // oneDNN's code for AMX takes this order alone.
  const bool in_bf16 = some_convolution([](const StepNode& node) { return node.attrs.count(kInBf16) > 0; });
  Layout(graph, threads, in_bf16 ? kChannelsLast : channels, channels).run();
}

}  // namespace kolo
