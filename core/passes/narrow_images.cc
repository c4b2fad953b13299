// A pass: images between convolutions in bf16 are stored in bf16. Contract: pipeline.h.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/bf16.h>
#include <kolo/core/ops/blocked.h>
#include <kolo/core/passes/pipeline.h>

namespace kolo {
namespace {

// Which inputs and outputs of a node may be images in bf16, and how they hang together.
struct Images {
  enum class Kind {
    converts,   // each as it comes: oneDNN reads one type and writes another
    of_a_norm,  // all of them, always: what is made otherwise is converted
    like_input  // what comes out has the type of what goes in
  };
  Kind kind = Kind::converts;
  std::vector<int> inputs;
  std::vector<int> outputs;
};

Images images_of(const StepNode& node) {
  const std::string& op = node.schema->name();
  const auto from = [&](int first, int last) {  // the inputs first … last − 1
    std::vector<int> inputs;
    for (int i = first; i < last; ++i) inputs.push_back(i);
    return inputs;
  };
  const int count = static_cast<int>(node.inputs.size());
  if (op == kBlockedBatchNormOp) {
    Images images{Images::Kind::of_a_norm, from(5, count), {0}};
    images.inputs.push_back(0);
    return images;
  }
  if (op == kBlockedBatchNormGradOp) {
    const bool reads_offset = node.attrs.at("relu_of_x").get<bool>();
    Images images{Images::Kind::of_a_norm, from(4, reads_offset ? count - 1 : count), {0}};
    images.inputs.push_back(0);
    if (node.dtypes.size() > 3) images.outputs.push_back(3);
    return images;
  }
  if (op == kBlockedMaxPoolOp || op == kBlockedPadOp || op == kBlockedSliceOp)
    return {Images::Kind::like_input, {0}, {0}};
  if (op == kToBlockedOp) return {Images::Kind::converts, {}, {0}};
  if (op == kToRowMajorOp) return {Images::Kind::converts, {0}, {}};

  Images images;
  if (node.attrs.count(kInBf16) == 0) return images;
  const auto in_blocks = [&](const char* side) { return node.attrs.at(side).get<std::int64_t>() != 0; };
  const auto add = [&](const char* side, std::vector<int>& to, int i) {
    if (in_blocks(side)) to.push_back(i);
  };
  if (op == kBlockedConv2dOp) add("images_block", images.inputs, 0), add("results_block", images.outputs, 0);
  if (op == kBlockedConv2dImagesOp)
    add("results_block", images.inputs, 1), add("images_block", images.outputs, 0);
  if (op == kBlockedConv2dWeightsOp)
    add("images_block", images.inputs, 0), add("results_block", images.inputs, 1);
  return images;
}

bool contains(const std::vector<int>& list, int i) {
  return std::find(list.begin(), list.end(), i) != list.end();
}

class Narrower {
 public:
  explicit Narrower(StepGraph& graph) : graph_(graph), users_(graph.users()) {
    for (const StepNode& node : graph.nodes) images_.push_back(images_of(node));
  }

  void run() {
    const std::vector<int> order = topological_order(graph_);
    for (const int n : order)
      for (const int o : images_[n].outputs)
        if (is_narrow(n, {n, o})) narrow(n, o);
    for (const int n : order) convert_inputs(n);
    for (StepValue& fetch : graph_.fetches)
      if (fetch.node >= 0) fetch = wide(fetch);
  }

 private:
  bool is_narrow(int n, StepValue v) const {
    switch (images_[n].kind) {
      case Images::Kind::of_a_norm: return true;
      case Images::Kind::like_input: return narrow_.count(graph_.nodes[n].inputs[0]) > 0;
      case Images::Kind::converts: break;
    }
    bool all = true;
    for (const int user : users_[n])
      for (std::size_t i = 0; i < graph_.nodes[user].inputs.size(); ++i) {
        if (graph_.nodes[user].inputs[i] != v) continue;
        const bool reads = contains(images_[user].inputs, static_cast<int>(i));
        if (reads && images_[user].kind == Images::Kind::of_a_norm) return true;
        all = all && reads;
      }
    return all && std::find(graph_.fetches.begin(), graph_.fetches.end(), v) == graph_.fetches.end();
  }

  void narrow(int n, int output) {
    StepNode& node = graph_.nodes[n];
    node.dtypes[output] = DType::bf16;
    if (node.attrs.count("type") > 0) node.attrs.insert_or_assign("type", DType::bf16);
    narrow_.insert({n, output});
  }

  void convert_inputs(int n) {
    for (std::size_t i = 0; i < graph_.nodes[n].inputs.size(); ++i) {
      const StepValue in = graph_.nodes[n].inputs[i];
      const bool is_image = contains(images_[n].inputs, static_cast<int>(i));
      StepValue read = in;
      if (!is_image) read = wide(in);
      else if (images_[n].kind == Images::Kind::of_a_norm && narrow_.count(in) == 0)
        read = converted(in, kToBf16Op, "/bf16");
      graph_.nodes[n].inputs[i] = read;
    }
  }

  StepValue wide(StepValue v) { return narrow_.count(v) > 0 ? converted(v, kFromBf16Op, "/f32") : v; }

  // Right behind what makes the value; once for all who read it.
  StepValue converted(StepValue v, const char* op, const char* suffix) {
    const auto found = converted_.find(v);
    if (found != converted_.end()) return found->second;
    const std::string name = graph_.nodes[v.node].name + suffix;
    return converted_[v] = {graph_.add(op, name, {v}, {}, graph_.nodes[v.node].order + 1), 0};
  }

  StepGraph& graph_;
  std::vector<std::vector<int>> users_;  // of the nodes that were there before, as are these:
  std::vector<Images> images_;
  std::set<StepValue> narrow_;
  std::map<StepValue, StepValue> converted_;
};

}  // namespace

void narrow_images(StepGraph& graph, int) {
  const bool some = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const StepNode& node) {
    return node.schema->name().starts_with("BlockedConv2D") && node.attrs.count(kInBf16) > 0;
  });
  if (some) Narrower(graph).run();
}

}  // namespace kolo
