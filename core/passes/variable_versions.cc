#include <kolo/core/passes/variable_versions.h>

#include <algorithm>

#include <kolo/core/passes/variable_uses.h>

namespace kolo {

VariableVersions::VariableVersions(const StepGraph& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (const VariableUse& use : variable_uses(graph, static_cast<int>(i)))
      if (use.updated) updates_[use.storage].push_back(graph.nodes[i].order);
  for (auto& [storage, orders] : updates_) {
    std::sort(orders.begin(), orders.end());
    orders.erase(std::unique(orders.begin(), orders.end()), orders.end());
  }
}

bool VariableVersions::changes(const StepGraph& graph, StepValue value) const {
  return updates_.count(variable_of(graph, value)) > 0;
}

int VariableVersions::seen_by(const StepGraph& graph, StepValue value, std::int64_t order) const {
  const auto found = updates_.find(variable_of(graph, value));
  if (found == updates_.end()) return 0;
  const auto& orders = found->second;
  return static_cast<int>(std::lower_bound(orders.begin(), orders.end(), order) - orders.begin());
}

std::int64_t VariableVersions::last_seen_by(const StepGraph& graph, StepValue value,
                                            std::int64_t order) const {
  const int seen = seen_by(graph, value, order);
  return seen == 0 ? -1 : updates_.at(variable_of(graph, value))[static_cast<std::size_t>(seen) - 1];
}

}  // namespace kolo
