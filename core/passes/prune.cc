#include <kolo/core/passes/prune.h>

#include <map>
#include <utility>

#include <kolo/core/graph/reached.h>

namespace kolo {
namespace {

using FeedIndex = std::map<std::pair<const Node*, int>, int>;

// A feed is there before the step begins: whoever waits for such a node has nothing to wait for. Other ops
// that are fed may have effects, which is what a control edge is for.
bool is_fed_placeholder(const Node& node, const FeedIndex& fed) {
  return is_placeholder(node) && fed.count({&node, 0}) > 0;
}

detail::NodesById needed_nodes(const StepSignature& signature, const FeedIndex& fed) {
  const auto need_value = [&](const Output& value, std::vector<const Node*>& next) {
    if (fed.count({value.node, value.index}) == 0) next.push_back(value.node);
  };
  const auto need_node = [&](const Node* node, std::vector<const Node*>& next) {
    if (!is_fed_placeholder(*node, fed)) next.push_back(node);
  };
  std::vector<const Node*> ends;
  for (std::size_t i = 0; i < signature.fetched.size(); ++i) {
    if (signature.fetched[i]) need_value(signature.fetched[i], ends);
    else need_node(signature.targets[i], ends);
  }
  return detail::reached(std::move(ends), [&](const Node& node, std::vector<const Node*>& next) {
    for (const Output& in : node.inputs()) need_value(in, next);
    for (const Node* before : node.control_inputs())
      if (before->id() >= signature.first_node) need_node(before, next);
  });
}

std::vector<int> ends_of(const StepGraph& graph) {
  std::vector<bool> followed(graph.nodes.size(), false);
  for (const StepNode& node : graph.nodes) {
    for (const StepValue in : node.inputs) followed[in.node] = true;
    for (const int before : node.control_inputs) followed[before] = true;
  }
  for (const StepValue fetch : graph.fetches)
    if (fetch.node >= 0) followed[fetch.node] = true;
  std::vector<int> ends;
  for (std::size_t i = 0; i < followed.size(); ++i)
    if (!followed[i]) ends.push_back(static_cast<int>(i));
  return ends;
}

}  // namespace

bool is_placeholder(const Node& node) {
  const std::string& op = node.op();
  return op == "Placeholder" || op == "PlaceholderWithDefault" || op == "LoopVariable";
}

StepGraph prune(const StepSignature& signature) {
  FeedIndex fed;
  for (std::size_t i = 0; i < signature.fed.size(); ++i)
    fed[{signature.fed[i].first.node, signature.fed[i].first.index}] = static_cast<int>(i);

  StepGraph step;
  for (std::size_t i = 0; i < signature.fed.size(); ++i) {
    const auto& [value, shape] = signature.fed[i];
    const int feed =
        step.add(kFeedOp, value.node->name(), {}, {{"feed", i}, {"dtype", value.dtype()}, {"shape", shape}},
                 value.node->id() * kOrderStep);
    step.nodes[feed].fed = value.node;
    if (const auto gpu = signature.fed_on.find(static_cast<int>(i)); gpu != signature.fed_on.end())
      step.nodes[feed].device = gpu->second;
  }
  std::map<const Node*, int> index;
  const auto value_of = [&](const Output& value) -> StepValue {
    const auto feed = fed.find({value.node, value.index});
    if (feed != fed.end()) return {feed->second, 0};
    return {index.at(value.node), value.index};
  };
  // Ids are a topological order: inputs have their place, and their shapes, before their consumers come.
  for (const auto& [id, node] : needed_nodes(signature, fed)) {
    StepNode copy;
    copy.schema = &node->schema();
    copy.name = node->name();
    copy.attrs = node->attrs();
    copy.origin = node;
    copy.order = node->id() * kOrderStep;
    for (const Output& in : node->inputs()) copy.inputs.push_back(value_of(in));
    for (const Node* before : node->control_inputs())
      if (before->id() >= signature.first_node && !is_fed_placeholder(*before, fed))
        copy.control_inputs.push_back(index.at(before));
    // Here it is not fed: it is its default, of that shape.
    if (copy.schema->name() == "PlaceholderWithDefault") {
      copy.schema = &find_op("Identity");
      copy.attrs.clear();
    }
    index[node] = static_cast<int>(step.nodes.size());
    step.nodes.push_back(std::move(copy));
    infer_outputs(step, index[node]);
  }
  for (const Output& fetch : signature.fetched) step.fetches.push_back(fetch ? value_of(fetch) : StepValue{});
  step.ends = ends_of(step);
  return step;
}

}  // namespace kolo
