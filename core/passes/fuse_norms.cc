// A pass: normalization takes sums and rectifiers beside it with it, forward and backward. Contract:
// pipeline.h.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/blocked.h>
#include <kolo/core/ops/normalization.h>
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

// On GPUs, where each node is a pass over memory. On CPUs fuse_elementwise makes one of the sums.
class LayerNormFuser : NodeFuser {
 public:
  explicit LayerNormFuser(StepGraph& graph) : NodeFuser(graph), can_be_skipped_(can_be_skipped(graph)) {}

  void run() {
    for (const int n : topological_order(graph_)) {
      if (is_on_cpu(graph_.nodes[n]) || can_be_skipped_[n]) continue;
      if (op(n) == "LayerNorm") take_sum(n);
      else if (op(n) == "LayerNormGrad") take_sum_behind(n);
    }
    graph_.compact(keep_);
  }

 private:
  // The sum in front of norm `n`, whoever else reads it, and the bias of one of its terms.
  void take_sum(int n) {
    StepNode& norm = graph_.nodes[n];
    const StepValue sum = norm.inputs[0];
    if (op(sum.node) != "Add" || !norm.control_inputs.empty() || can_be_skipped_[sum.node] ||
        !can_go(sum.node, n) || !are_alike(sum) || !sees_the_same(sum.node, n) || follows(n, sum.node))
      return;
    std::vector<StepValue> terms = graph_.nodes[sum.node].inputs;
    if (!has_own_bias(terms[0], sum.node, n)) std::swap(terms[0], terms[1]);
    const bool has_bias = has_own_bias(terms[0], sum.node, n);
    std::vector<StepValue> inputs{terms[0], norm.inputs[1], norm.inputs[2], terms[1]};
    if (has_bias) {
      const std::vector<StepValue>& biased = graph_.nodes[terms[0].node].inputs;
      inputs[0] = biased[0];
      inputs.push_back(biased[1]);
      keep_[terms[0].node] = false;
    }
    norm.inputs = std::move(inputs);
    for (const StepValue in : norm.inputs) users_[in.node].push_back(n);
    norm.schema = &find_op(detail::kSumLayerNormOp);
    infer_outputs(graph_, n);
    replace(sum.node, {n, 3});
  }

  // dx of gradient `n` and the other term of a sum that alone reads it.
  void take_sum_behind(int n) {
    const int sum = only_reader({n, 0}, n);
    if (sum < 0 || (op(sum) != "Add" && op(sum) != "AddN") || can_be_skipped_[sum]) return;
    const std::vector<StepValue>& terms = graph_.nodes[sum].inputs;
    if (terms.size() != 2 || terms[0] == terms[1] || !are_alike({sum, 0})) return;
    const StepValue other = terms[0] == StepValue{n, 0} ? terms[1] : terms[0];
    StepNode& gradient = graph_.nodes[n];
    // What is older does not follow from it.
    if (graph_.nodes[other.node].order >= gradient.order ||
        versions_.seen_by(graph_, other, gradient.order) !=
            versions_.seen_by(graph_, other, graph_.nodes[sum].order))
      return;
    gradient.inputs.push_back(other);
    users_[other.node].push_back(n);
    gradient.schema = &find_op(detail::kSumLayerNormGradOp);
    infer_outputs(graph_, n);
    replace(sum, {n, 0});
  }

  // The sum's terms have its shape, all of it known.
  bool are_alike(StepValue sum) const {
    const auto& terms = graph_.nodes[sum.node].inputs;
    return graph_.shape(sum).is_fully_known() && std::all_of(terms.begin(), terms.end(), [&](StepValue term) {
             return graph_.shape(term) == graph_.shape(sum);
           });
  }

  // Whether scale or offset of norm `n` follow from node `sum`. What is older does not.
  bool follows(int n, int sum) const {
    std::vector<int> open{graph_.nodes[n].inputs[1].node, graph_.nodes[n].inputs[2].node};
    std::set<int> seen;
    while (!open.empty()) {
      const int m = open.back();
      open.pop_back();
      if (m == sum) return true;
      if (graph_.nodes[m].order < graph_.nodes[sum].order || !seen.insert(m).second) continue;
      for (const StepValue in : graph_.nodes[m].inputs) open.push_back(in.node);
      for (const int before : graph_.nodes[m].control_inputs) open.push_back(before);
    }
    return false;
  }

  // The term is rows plus a bias of their columns, and nobody but node `sum` reads it.
  bool has_own_bias(StepValue term, int sum, int n) const {
    return op(term.node) == "BiasAdd" && is_of_columns(graph_.nodes[term.node]) &&
           only_reader(term, n) == sum && can_go(term.node, n) && sees_the_same(term.node, n);
  }

  // Of images it may be one of their channels, of which there happen to be as many.
  bool is_of_columns(const StepNode& bias_add) const { return bias_add.shapes[0].rank() <= 3; }

  const std::vector<bool> can_be_skipped_;
};

}  // namespace

void fuse_norms(StepGraph& graph, int) {
  NormFuser(graph).run();
  LayerNormFuser(graph).run();
}

}  // namespace kolo
