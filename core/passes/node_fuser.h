// What passes have in common that let a node take those behind it with it.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <kolo/core/passes/step_graph.h>
#include <kolo/core/passes/variable_uses.h>

namespace kolo {

class NodeFuser {
 protected:
  explicit NodeFuser(StepGraph& graph)
      : graph_(graph),
        versions_(graph),
        users_(graph.users()),
        keep_(graph.nodes.size(), true),
        waited_for_(nodes_waited_for(graph)),
        fetched_(graph.fetches.begin(), graph.fetches.end()) {}

  const std::string& op(int n) const { return graph_.nodes[n].schema->name(); }

  std::vector<int> readers(StepValue v) const {
    std::vector<int> found;
    for (const int user : users_[v.node]) {
      const auto& inputs = graph_.nodes[user].inputs;
      if (keep_[user] && std::find(inputs.begin(), inputs.end(), v) != inputs.end() &&
          (found.empty() || found.back() != user))
        found.push_back(user);
    }
    return found;
  }
  // Node `n` can go: nobody waits for it, it waits for nothing but its inputs, and it is where `beside` is.
  bool can_go(int n, int beside) const {
    return waited_for_.count(n) == 0 && graph_.nodes[n].control_inputs.empty() &&
           graph_.nodes[n].device == graph_.nodes[beside].device;
  }
  // The one node that reads the value, if it can go; else −1.
  int only_reader(StepValue v, int beside) const {
    const std::vector<int> all = readers(v);
    return all.size() == 1 && fetched_.count(v) == 0 && can_go(all[0], beside) ? all[0] : -1;
  }
  // Node `earlier` may run as late as `n`: of variables it sees the same.
  bool sees_the_same(int earlier, int n) const {
    const StepNode &before = graph_.nodes[earlier], &at = graph_.nodes[n];
    return std::all_of(before.inputs.begin(), before.inputs.end(), [&](StepValue in) {
      return versions_.seen_by(graph_, in, before.order) == versions_.seen_by(graph_, in, at.order);
    });
  }
  // All that read node `gone` read `value` instead.
  void replace(int gone, StepValue value) {
    keep_[gone] = false;
    const StepValue old{gone, 0};
    for (const int reader : readers(old)) users_[value.node].push_back(reader);
    graph_.replace_uses(old, value);
    if (fetched_.count(old) > 0) fetched_.insert(value);
  }

  StepGraph& graph_;
  const VariableVersions versions_;
  std::vector<std::vector<int>> users_;  // by node; of what has gone, too
  std::vector<bool> keep_;               // false: it goes when the pass is done
  const std::set<int> waited_for_;
  std::set<StepValue> fetched_;
};

}  // namespace kolo
