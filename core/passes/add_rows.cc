// A pass: slices that are added to another tensor are added to its rows. Contract: pipeline.h.
#include <algorithm>
#include <vector>

#include <kolo/core/ops/indexing.h>
#include <kolo/core/passes/node_fuser.h>
#include <kolo/core/passes/pipeline.h>

namespace kolo {
namespace {

class RowAdder : NodeFuser {
 public:
  explicit RowAdder(StepGraph& graph) : NodeFuser(graph), can_be_skipped_(can_be_skipped(graph)) {}

  void run() {
    for (const int n : topological_order(graph_))
      if (op(n) == "AddN" && !is_on_cpu(graph_.nodes[n]) && !can_be_skipped_[n]) take_slices(n);
    graph_.compact(keep_);
  }

 private:
  void take_slices(int sum) {
    StepNode& node = graph_.nodes[sum];
    if (node.inputs.size() != 2 || !is_floating(node.dtypes[0])) return;
    for (const int term : {1, 0}) {
      const StepValue slices = node.inputs[term], dense = node.inputs[1 - term];
      const StepNode& made = graph_.nodes[slices.node];
      if (op(slices.node) != "SlicesToDense" || slices == dense || readers(slices).size() > 1 ||
          fetched_.count(slices) > 0 || !can_go(slices.node, sum) || can_be_skipped_[slices.node] ||
          !sees_the_same(slices.node, sum))
        continue;
      const std::vector<StepValue> inputs{dense, made.inputs[1], made.inputs[0]};
      if (graph_.shape(dense) != graph_.shape(slices) || !are_known(inputs)) continue;
      node.schema = &find_op(detail::kAddRowsOp);
      node.attrs.clear();
      node.inputs = inputs;
      for (const StepValue in : inputs) users_[in.node].push_back(sum);
      infer_outputs(graph_, sum);
      keep_[slices.node] = false;
      return;
    }
  }

  bool are_known(const std::vector<StepValue>& inputs) const {
    return std::all_of(inputs.begin(), inputs.end(),
                       [&](StepValue in) { return graph_.shape(in).is_fully_known(); });
  }

  const std::vector<bool> can_be_skipped_;
};

}  // namespace

void add_rows(StepGraph& graph, int) { RowAdder(graph).run(); }

}  // namespace kolo
