#include <kolo/core/graph/inference_form.h>

#include <map>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

std::map<std::string, InferenceForm>& registry() {
  static std::map<std::string, InferenceForm> forms;
  return forms;
}

// By id: inputs come first.
std::map<int, const Node*> ancestors_of(const Node* last) {
  std::map<int, const Node*> found;
  std::vector<const Node*> stack{last};
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (!found.emplace(node->id(), node).second) continue;
    for (const Output& in : node->inputs()) stack.push_back(in.node);
  }
  return found;
}

Outputs copy_of(const Scope& s, const Node& node, const Outputs& inputs) {
  for (int i = 0; i < node.num_inputs(); ++i)
    if (node.schema().input_spec(i).updated)
      throw InvalidArgumentError("inference_form: {} updates a variable; it cannot be built a second time",
                                 describe(node));
  const Operation copy = s.add(node.op(), inputs, node.attrs());
  Outputs outputs;
  for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(copy.output(i));
  return outputs;
}

}  // namespace

RegisterInferenceForm::RegisterInferenceForm(const std::string& op, InferenceForm form) {
  if (!registry().emplace(op, std::move(form)).second)
    throw InternalError("op {} has two inference forms", op);
}

Output inference_form(const Scope& s, Output y) {
  const Scope scope = s.name_scope("inference");
  std::map<const Node*, Outputs> replaced;
  for (const auto& [id, node] : ancestors_of(y.node)) {
    bool changed = false;
    Outputs inputs = node->inputs();
    for (Output& in : inputs) {
      const auto found = replaced.find(in.node);
      if (found == replaced.end()) continue;
      changed = true;
      in = found->second.at(static_cast<std::size_t>(in.index));
    }
    const auto form = registry().find(node->op());
    if (form == registry().end() && !changed) continue;
    const Scope place = scope.named(node->name()).device(node->requested_device()).in_branch(node->branch());
    replaced[node] =
        form != registry().end() ? form->second(place, *node, inputs) : copy_of(place, *node, inputs);
  }
  const auto found = replaced.find(y.node);
  return found == replaced.end() ? y : found->second.at(static_cast<std::size_t>(y.index));
}

}  // namespace kolo
