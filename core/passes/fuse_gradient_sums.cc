// A pass: a convolution's gradient of its images takes the addition of another gradient with it. Contract:
// pipeline.h.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/blocked.h>
#include <kolo/core/passes/cpu_kernels.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/variable_uses.h>

namespace kolo {
namespace {

class GradientSums {
 public:
  GradientSums(StepGraph& graph, int threads)
      : graph_(graph),
        threads_(threads),
        versions_(graph),
        users_(graph.users()),
        keep_(graph.nodes.size(), true),
        waited_for_(nodes_waited_for(graph)),
        fetched_(graph.fetches.begin(), graph.fetches.end()) {}

  void run() {
    // Of two such gradients the later takes the other: as little as possible is computed later than before.
    std::vector<int> order = topological_order(graph_);
    std::reverse(order.begin(), order.end());
    for (const int n : order)
      if (op(n) == kBlockedConv2dImagesOp) take_sum(n);
    graph_.compact(keep_);
  }

 private:
  const std::string& op(int n) const { return graph_.nodes[n].schema->name(); }

  // The node that alone reads output 0 of node `n`, once, if it can go for it; else −1.
  int only_reader(int n) const {
    if (users_[n].size() != 1 || fetched_.count({n, 0}) > 0) return -1;
    const int reader = users_[n][0];
    const bool can_go = keep_[reader] && waited_for_.count(reader) == 0 &&
                        graph_.nodes[reader].control_inputs.empty() &&
                        graph_.nodes[reader].device == graph_.nodes[n].device;
    return can_go ? reader : -1;
  }

  void take_sum(int n) {
    const int sum = waited_for_.count(n) == 0 ? only_reader(n) : -1;
    if (sum < 0 || (op(sum) != "AddN" && op(sum) != "Add") || graph_.nodes[sum].inputs.size() != 2) return;
    const auto& terms = graph_.nodes[sum].inputs;
    StepNode changed = graph_.nodes[n];
    changed.inputs.push_back(terms[0] == StepValue{n, 0} ? terms[1] : terms[0]);
    int last = sum;
    const int mask = only_reader(sum);
    if (mask >= 0 && op(mask) == "ReluGrad" && graph_.nodes[mask].inputs[0] == StepValue{sum, 0}) {
      changed.inputs.push_back(graph_.nodes[mask].inputs[1]);
      last = mask;
    }
    const std::int64_t before = changed.order;
    changed.order = graph_.nodes[last].order;
    for (const StepValue in : changed.inputs)
      if (versions_.seen_by(graph_, in, before) != versions_.seen_by(graph_, in, changed.order)) return;
    const bool like_images = std::all_of(changed.inputs.begin() + 2, changed.inputs.end(), [&](StepValue in) {
      return graph_.shape(in) == graph_.shape({n, 0}) && graph_.dtype(in) == graph_.dtype({n, 0});
    });
    if (!like_images || !has_cpu_kernel(graph_, changed, threads_)) return;
    graph_.nodes[n] = std::move(changed);
    for (std::size_t i = 2; i < graph_.nodes[n].inputs.size(); ++i)
      users_[graph_.nodes[n].inputs[i].node].push_back(n);
    keep_[sum] = keep_[last] = false;
    users_[n] = users_[last];
    graph_.replace_uses({last, 0}, {n, 0});
    if (fetched_.count({last, 0}) > 0) fetched_.insert({n, 0});
  }

  StepGraph& graph_;
  int threads_;
  const VariableVersions versions_;
  std::vector<std::vector<int>> users_;  // by node; of what has gone, too
  std::vector<bool> keep_;
  const std::set<int> waited_for_;
  std::set<StepValue> fetched_;
};

}  // namespace

void fuse_gradient_sums(StepGraph& graph, int threads) { GradientSums(graph, threads).run(); }

}  // namespace kolo
