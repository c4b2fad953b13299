#include <kolo/core/graph/loop_nodes.h>

#include <set>
#include <string>
#include <utility>

#include <kolo/core/graph/reached.h>

namespace kolo {
namespace {

Outputs named_by(const Node& loop, const std::string& attr) {
  if (loop.attrs().count(attr) == 0) return {};  // a loop's gradient has more of them
  const AttrValue& value = loop.attr(attr);
  if (const auto* name = std::get_if<std::string>(&value.value())) return {loop.graph().find_output(*name)};
  Outputs outputs;
  for (const auto& name : value.get<std::vector<std::string>>())
    outputs.push_back(loop.graph().find_output(name));
  return outputs;
}

Outputs named_by(const Node& loop, const std::vector<std::string>& attrs) {
  Outputs outputs;
  for (const std::string& attr : attrs)
    for (const Output& output : named_by(loop, attr)) outputs.push_back(output);
  return outputs;
}

}  // namespace

bool is_loop(const Node& node) { return !node.schema().attrs_naming_tensors().empty(); }

std::vector<const Node*> nodes_in_loop(const Node& loop) {
  if (!is_loop(loop)) return {};
  std::set<std::pair<const Node*, int>> fed;
  for (const Output& output : named_by(loop, {"variables", "captures", "backward", "totals"}))
    fed.insert({output.node, output.index});
  const int first_node = named_by(loop, "variables").at(0).node->id();

  // A graph from a file may say that a loop is part of its own body.
  const auto visit = [&](const Node* node, std::vector<const Node*>& next) {
    if (node->id() < loop.id()) next.push_back(node);
  };
  const auto visit_value = [&](const Output& value, std::vector<const Node*>& next) {
    if (fed.count({value.node, value.index}) == 0) visit(value.node, next);
  };
  const auto visit_ends_of = [&](const Node& node, std::vector<const Node*>& next) {
    for (const Output& end : named_by(node, {"condition", "results", "next_backward", "next_totals"}))
      visit_value(end, next);
  };
  std::vector<const Node*> ends;
  visit_ends_of(loop, ends);
  const auto found = detail::reached(std::move(ends), [&](const Node& node, std::vector<const Node*>& next) {
    for (const Output& in : node.inputs()) visit_value(in, next);
    for (const Node* before : node.control_inputs())
      if (before->id() >= first_node) visit(before, next);
    if (is_loop(node)) visit_ends_of(node, next);
  });
  std::vector<const Node*> nodes;
  for (const auto& [id, node] : found) nodes.push_back(node);
  return nodes;
}

}  // namespace kolo
