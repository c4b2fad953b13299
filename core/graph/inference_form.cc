#include <kolo/core/graph/inference_form.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/registry.h>
#include <kolo/core/graph/loop_nodes.h>
#include <kolo/core/graph/reached.h>

namespace kolo {
namespace {

Registry<InferenceForm>& forms() {
  static Registry<InferenceForm> forms("the inference form of");
  return forms;
}

struct Replacement {
  Operation op;  // what those wait for that waited for the node
  Outputs outputs;
};
using Replacements = std::map<const Node*, Replacement>;

// What is computed for `ends`: all of a step, or an iteration of a loop.
struct Part {
  Outputs ends;
  std::set<std::pair<const Node*, int>> fed;
  int first_node = 0;  // control inputs of smaller ids are the loop's own
};

detail::NodesById nodes_of(const Part& part) {
  const auto value = [&](const Output& of, std::vector<const Node*>& next) {
    if (part.fed.count({of.node, of.index}) == 0) next.push_back(of.node);
  };
  std::vector<const Node*> ends;
  for (const Output& end : part.ends) value(end, ends);
  return detail::reached(std::move(ends), [&](const Node& node, std::vector<const Node*>& next) {
    for (const Output& in : node.inputs()) value(in, next);
    for (const Node* before : node.control_inputs())
      if (before->id() >= part.first_node) next.push_back(before);
  });
}

Outputs outputs_of(const Node& loop, const char* attr) {
  Outputs outputs;
  for (const auto& name : loop.attr<std::vector<std::string>>(attr))
    outputs.push_back(loop.graph().find_output(name));
  return outputs;
}

// An iteration of the loop; the first of its ends is the condition.
Part iteration_of(const Node& loop) {
  Part part;
  part.ends = outputs_of(loop, "results");
  part.ends.insert(part.ends.begin(), loop.graph().find_output(loop.attr<std::string>("condition")));
  for (const char* attr : {"variables", "captures"})
    for (const Output& value : outputs_of(loop, attr)) part.fed.insert({value.node, value.index});
  part.first_node = outputs_of(loop, "variables").at(0).node->id();
  return part;
}

Output replaced(const Output& value, const Replacements& by) {
  const auto found = by.find(value.node);
  return found == by.end() ? value : found->second.outputs.at(static_cast<std::size_t>(value.index));
}

bool updates_a_variable(const Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i)
    if (node.schema().input_spec(i).updated) return true;
  return false;
}

Replacement copy_of(const Scope& s, const Node& node, const Outputs& inputs, const AttrMap& attrs) {
  std::vector<const Node*> all = nodes_in_loop(node);
  all.push_back(&node);
  for (const Node* one : all)
    if (updates_a_variable(*one))
      throw InvalidArgumentError("inference_form: {} updates a variable; it cannot be built a second time",
                                 describe(*one));
  Replacement copy{.op = s.add(node.op(), inputs, attrs), .outputs = {}};
  for (int i = 0; i < node.num_outputs(); ++i) copy.outputs.push_back(copy.op.output(i));
  return copy;
}

Replacements replacements_in(const Scope& s, const Part& part);

// The loop's attributes with the ends that an iteration has in inference; the loop's own where they are the
// same.
AttrMap attrs_in_inference(const Scope& s, const Node& loop) {
  const Part iteration = iteration_of(loop);
  const Replacements by = replacements_in(s.without_control_dependencies(), iteration);
  if (by.empty()) return loop.attrs();
  if (loop.attrs().count("backward") > 0)
    throw InvalidArgumentError(
        "inference_form: {} is the gradient of a loop whose body acts in training only; ask for the form of "
        "what does not follow from gradients",
        describe(loop));
  AttrMap attrs = loop.attrs();
  std::vector<std::string> results;
  for (std::size_t i = 1; i < iteration.ends.size(); ++i)
    results.push_back(replaced(iteration.ends[i], by).name());
  attrs.insert_or_assign("condition", replaced(iteration.ends[0], by).name());
  attrs.insert_or_assign("results", results);
  return attrs;
}

// What `inputs` and the control inputs of `node` became; the node's place among the new nodes.
struct NewPlace {
  Scope scope;
  Outputs inputs;
  bool changed;
};

NewPlace new_place(const Scope& s, const Node& node, const Replacements& by) {
  NewPlace place{.scope = s.named(node.name()).device(node.requested_device()).in_branch(node.branch()),
                 .inputs = {},
                 .changed = false};
  for (const Output& in : node.inputs()) {
    place.inputs.push_back(replaced(in, by));
    place.changed |= by.count(in.node) > 0;
  }
  for (const Node* before : node.control_inputs()) {
    const auto found = by.find(before);
    const Operation now = found == by.end() ? Operation(before) : found->second.op;
    place.changed |= found != by.end();
    place.scope =
        before == node.branch() ? place.scope.in_branch(now) : place.scope.control_dependencies({now});
  }
  return place;
}

Replacement formed(const InferenceForm& form, const NewPlace& place, const Node& node) {
  Replacement made{.op = {}, .outputs = form(place.scope, node, place.inputs)};
  for (const Output& output : made.outputs)
    if (output && !made.op) made.op = output.node;
  return made;
}

// Noise that multiplies is drawn around ones: without it the product is the other factor.
Output factor_of_ones(const Node& node, const NewPlace& place) {
  if (!place.changed || node.op() != "Mul") return {};
  for (std::size_t i = 0; i < 2; ++i)
    if (const Output& ones = place.inputs[i], &other = place.inputs[1 - i];
        ones.node->op() == "OnesLike" && ones.node->input(0) == other)
      return other;
  return {};
}

// New nodes for those of the part that act in training only, and for all that follows from them.
Replacements replacements_in(const Scope& s, const Part& part) {
  Replacements by;
  for (const auto& [id, node] : nodes_of(part)) {
    const NewPlace place = new_place(s, *node, by);
    if (const InferenceForm* const form = forms().find(node->op())) {
      by[node] = formed(*form, place, *node);
      continue;
    }
    if (const Output factor = factor_of_ones(*node, place); factor) {
      by[node] = {.op = factor.node, .outputs = {factor}};
      continue;
    }
    const AttrMap attrs = is_loop(*node) ? attrs_in_inference(s, *node) : node->attrs();
    if (place.changed || attrs != node->attrs()) by[node] = copy_of(place.scope, *node, place.inputs, attrs);
  }
  return by;
}

}  // namespace

RegisterInferenceForm::RegisterInferenceForm(const std::string& op, InferenceForm form, SourceLine place) {
  forms().add(op, std::move(form), place);
}

Output inference_form(const Scope& s, Output y) {
  return replaced(y, replacements_in(s.name_scope("inference"), {.ends = {y}, .fed = {}, .first_node = 0}));
}

}  // namespace kolo
