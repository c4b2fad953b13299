// A pass: an update computes its gradient itself. Contract: pipeline.h.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <kolo/core/kernels/cpu/gemm/thin_gemm.h>
#include <kolo/core/ops/update_of_product.h>
#include <kolo/core/passes/gradient_product.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/variable_uses.h>

namespace kolo {
namespace {

class UpdatesOfProducts {
 public:
  explicit UpdatesOfProducts(StepGraph& graph)
      : graph_(graph),
        versions_(graph),
        skipped_(can_be_skipped(graph)),
        users_(graph.users()),
        keep_(graph.nodes.size(), true),
        waiting_(graph.nodes.size()) {
    for (const StepValue fetch : graph.fetches)
      if (fetch.node >= 0) fetched_.insert(fetch.node);
    for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n)
      for (const int before : graph.nodes[n].control_inputs) waiting_[before].push_back(n);
  }

  void run() {
    for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n) {
      const UpdateRuleOps* const rule = find_update_rule(graph_.nodes[n].schema->name());
      if (rule == nullptr || skipped_[n] || !users_[n].empty() || fetched_.count(n) > 0) continue;
      const int product = graph_.nodes[n].inputs.back().node;
      if (can_be_computed_by(product, n)) take(product, n, *rule);
    }
    graph_.compact(keep_);
  }

 private:
  bool can_be_computed_by(int product, int update) const {
    const StepNode &node = graph_.nodes[product], &user = graph_.nodes[update];
    if (!is_gradient_product(graph_, node) || node.device != user.device || !node.control_inputs.empty() ||
        graph_.placements.count({product, 0}) > 0 || users_[product].size() > 1 ||
        fetched_.count(product) > 0 || !all_can_wait_longer(waiting_[product]))
      return false;
    const StepValue x = node.inputs[0], dy = node.inputs[1];
    const detail::ThinGemm shape{graph_.shape(x).dim(0), graph_.shape(x).dim(1), graph_.shape(dy).dim(1)};
    return shape.is_worth_it() && is_read_alike(x, product, update) && is_read_alike(dy, product, update);
  }

  // For the update, too: nothing comes behind them. What is left of a reduction that this rank has nobody for
  // is such a node.
  bool all_can_wait_longer(const std::vector<int>& nodes) const {
    return std::all_of(nodes.begin(), nodes.end(), [&](int n) {
      return graph_.nodes[n].schema->name() == "NoOp" && waiting_[n].empty();
    });
  }

  // A factor is the same when the update reads it, and is not what that writes.
  bool is_read_alike(StepValue factor, int product, int update) const {
    const auto uses = variable_uses(graph_, update);
    const Node* const variable = variable_of(graph_, factor);
    return versions_.seen_by(graph_, factor, graph_.nodes[product].order) ==
               versions_.seen_by(graph_, factor, graph_.nodes[update].order) &&
           std::none_of(uses.begin(), uses.end(),
                        [&](const VariableUse& use) { return use.storage == variable; });
  }

  void take(int product, int update, const UpdateRuleOps& rule) {
    StepNode& node = graph_.nodes[update];
    const auto schema = std::make_shared<OpSchema>(update_of_product_op(rule));  // the node owns it
    schema->input("var").updates();
    for (const std::string& slot : rule.slots) schema->input(slot).updates();
    for (const std::string& scalar : rule.scalars) schema->input(scalar);
    schema->input("x").input("dy");
    node.schema = schema.get();
    node.resource = schema;
    node.inputs.pop_back();
    for (const StepValue factor : graph_.nodes[product].inputs) node.inputs.push_back(factor);
    node.dtypes.clear();
    node.shapes.clear();
    for (const int waiting : waiting_[product]) {
      auto& edges = graph_.nodes[waiting].control_inputs;
      std::replace(edges.begin(), edges.end(), product, update);
    }
    keep_[product] = false;
  }

  StepGraph& graph_;
  const VariableVersions versions_;
  const std::vector<bool> skipped_;
  const std::vector<std::vector<int>> users_;
  std::vector<bool> keep_;
  std::vector<std::vector<int>> waiting_;  // by node: those that have it as a control input
  std::set<int> fetched_;
};

}  // namespace

void apply_products(StepGraph& graph) { UpdatesOfProducts(graph).run(); }

}  // namespace kolo
