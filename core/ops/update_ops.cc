#include <kolo/core/ops/update_ops.h>

#include <set>

#include <kolo/core/ops/basic.h>

namespace kolo {
namespace {

std::set<const Node*> ancestors_of(const Output& loss) {
  std::set<const Node*> found;
  std::vector<const Node*> stack{loss.node};
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (!found.insert(node).second) continue;
    for (const Output& in : node->inputs()) stack.push_back(in.node);
  }
  return found;
}

}  // namespace

void add_update_op(const Scope& s, Operation update) {
  s.graph().add_to_collection(kUpdateOps, *update.node);
}

std::vector<Operation> update_ops(const Graph& graph) {
  const auto& nodes = graph.collection(kUpdateOps);
  return {nodes.begin(), nodes.end()};
}

Operation with_updates(const Scope& s, Operation step, Output loss) {
  const std::vector<Operation> updates = update_ops(s.graph());
  if (updates.empty()) return step;
  const std::set<const Node*> before_loss = ancestors_of(loss);
  std::vector<Operation> all{step};
  for (const Operation& update : updates) {
    const Node& node = *update.node;
    const auto& spec = node.schema();
    bool belongs = false;
    for (int i = 0; i < node.num_inputs(); ++i)
      belongs |= !spec.input_spec(i).updated && before_loss.count(node.input(i).node) > 0;
    if (!belongs) continue;
    all.push_back(s.colocate_with(update).control_dependencies({step}).add(node.op(), node.inputs(),
                                                                           node.attrs(), "update"));
  }
  return all.size() == 1 ? step : group(s.named("train_step"), all);
}

}  // namespace kolo
