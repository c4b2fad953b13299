// A pass: normalization takes the sum and the rectifier behind it with it, forward and backward. Contract:
// pipeline.h.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/blocked.h>
#include <kolo/core/passes/node_fuser.h>
#include <kolo/core/passes/pipeline.h>

namespace kolo {
namespace {

class NormFuser : NodeFuser {
 public:
  explicit NormFuser(StepGraph& graph) : NodeFuser(graph) {}

  void run() {
    const std::vector<int> order = topological_order(graph_);
    for (const int n : order)
      if (op(n) == kBlockedBatchNormOp) take_tail(n);
    for (const int n : order)
      if (op(n) == kBlockedBatchNormGradOp) take_gradient_of_tail(n);
    graph_.compact(keep_);
  }

 private:
  // y of norm `n` [+ something that was there before] [rectified] → output 0 of `n`.
  void take_tail(int n) {
    const StepValue y{n, 0};
    int next = only_reader(y, n);
    if (next >= 0 && op(next) == "Add") {
      const auto& terms = graph_.nodes[next].inputs;
      const StepValue other = terms[0] == y ? terms[1] : terms[0];
      const bool fits = other != y && graph_.shape(other) == graph_.shape(y) &&
                        graph_.nodes[other.node].order < graph_.nodes[n].order;
      if (!fits) return;
      graph_.nodes[n].inputs.push_back(other);
      users_[other.node].push_back(n);
      replace(next, y);
      next = only_reader(y, n);
    }
    if (next < 0 || op(next) != "Relu") return;
    graph_.nodes[n].attrs.insert_or_assign("relu", true);
    replace(next, y);
  }

  // dy of norm gradient `n` is a sum masked by the rectifier that its norm has taken: it takes sum and mask.
  void take_gradient_of_tail(int n) {
    const StepValue mean = graph_.nodes[n].inputs[2], dy = graph_.nodes[n].inputs[4], y{mean.node, 0};
    const int mask = dy.node;
    if (op(mean.node) != kBlockedBatchNormOp || !graph_.nodes[mean.node].attrs.at("relu").get<bool>()) return;
    if (op(mask) != "ReluGrad" || graph_.nodes[mask].inputs[1] != y || !can_go(mask, n) ||
        fetched_.count(dy) > 0 || !can_come_at(n, mask))
      return;
    StepNode& node = graph_.nodes[n];
    std::vector<StepValue> inputs(node.inputs.begin(), node.inputs.begin() + 4);
    for (const StepValue term : terms_of(graph_.nodes[mask].inputs[0], n)) {
      inputs.push_back(term);
      users_[term.node].push_back(n);
    }
    const bool of_x = mask_follows_from_x(n, mask);
    inputs.push_back(of_x ? graph_.nodes[mean.node].inputs[2] : y);
    users_[inputs.back().node].push_back(n);
    node.inputs = std::move(inputs);
    node.order = graph_.nodes[mask].order;
    node.attrs.insert_or_assign(of_x ? "relu_of_x" : "relu", true);
    keep_[mask] = false;
    if (readers(dy).empty()) return;
    node.attrs.insert_or_assign("added", std::int64_t{1});
    infer_outputs(graph_, n);
    replace(mask, {n, 3});
  }

  // What the rectifier of the norm let through the norm's gradient `n` can tell, at the time of node `mask`,
  // from what it reads anyway and the offset: then it need not read y.
  bool mask_follows_from_x(int n, int mask) const {
    const StepNode &gradient = graph_.nodes[n], &norm = graph_.nodes[gradient.inputs[2].node];
    const auto is_same = [&](int i) {
      const StepValue in = norm.inputs[i];
      return versions_.seen_by(graph_, in, norm.order) ==
             versions_.seen_by(graph_, in, graph_.nodes[mask].order);
    };
    return norm.inputs.size() == 5 && gradient.inputs[0] == norm.inputs[0] &&
           gradient.inputs[1] == norm.inputs[1] && gradient.inputs[2].output == 1 &&
           gradient.inputs[3] == StepValue{gradient.inputs[2].node, 2} &&
           gradient.attrs.at("epsilon").get<double>() == norm.attrs.at("epsilon").get<double>() &&
           is_same(1) && is_same(2);
  }

  // Node `n` may run as early as `earlier`, which it reads: what else it reads is there then, and of
  // variables it sees the same.
  bool can_come_at(int n, int earlier) const {
    const StepNode &node = graph_.nodes[n], &at = graph_.nodes[earlier];
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](StepValue in) {
      return in.node == earlier ||
             (graph_.nodes[in.node].order < at.order &&
              versions_.seen_by(graph_, in, node.order) == versions_.seen_by(graph_, in, at.order));
    });
  }

  // The two terms of a sum that is read nowhere else; else the value itself.
  std::vector<StepValue> terms_of(StepValue sum, int n) {
    const StepNode& node = graph_.nodes[sum.node];
    const bool is_sum = (op(sum.node) == "AddN" || op(sum.node) == "Add") && node.inputs.size() == 2 &&
                        graph_.shape(node.inputs[0]) == graph_.shape(node.inputs[1]);
    if (!is_sum || only_reader(sum, n) < 0 || !can_go(sum.node, n)) return {sum};
    keep_[sum.node] = false;
    return node.inputs;
  }
};

}  // namespace

void fuse_norms(StepGraph& graph, int) { NormFuser(graph).run(); }

}  // namespace kolo
