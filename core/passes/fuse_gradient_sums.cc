// A pass: a convolution's gradient of its images takes the addition of another gradient with it. Contract:
// pipeline.h.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/blocked.h>
#include <kolo/core/passes/cpu_kernels.h>
#include <kolo/core/passes/node_fuser.h>
#include <kolo/core/passes/pipeline.h>

namespace kolo {
namespace {

class GradientSums : NodeFuser {
 public:
  GradientSums(StepGraph& graph, int threads) : NodeFuser(graph), threads_(threads) {}

  void run() {
    // Of two such gradients the later takes the other: as little as possible is computed later than before.
    std::vector<int> order = topological_order(graph_);
    std::reverse(order.begin(), order.end());
    for (const int n : order)
      if (op(n) == kBlockedConv2dImagesOp) take_sum(n);
    graph_.compact(keep_);
  }

 private:
  void take_sum(int n) {
    const StepValue dx{n, 0};
    const int sum = waited_for_.count(n) == 0 ? only_reader(dx, n) : -1;
    if (sum < 0 || (op(sum) != "AddN" && op(sum) != "Add") || graph_.nodes[sum].inputs.size() != 2) return;
    const auto& terms = graph_.nodes[sum].inputs;
    const StepValue other = terms[0] == dx ? terms[1] : terms[0];
    if (other == dx) return;
    StepNode changed = graph_.nodes[n];
    changed.inputs.push_back(other);
    int last = sum;
    const StepValue added{sum, 0};
    const int mask = only_reader(added, n);
    if (mask >= 0 && op(mask) == "ReluGrad" && graph_.nodes[mask].inputs[0] == added &&
        graph_.nodes[mask].inputs[1] != added) {
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
    keep_[sum] = false;
    replace(last, dx);
  }

  const int threads_;
};

}  // namespace

void fuse_gradient_sums(StepGraph& graph, int threads) { GradientSums(graph, threads).run(); }

}  // namespace kolo
