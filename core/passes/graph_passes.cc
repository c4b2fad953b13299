#include <kolo/core/passes/graph_passes.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo {
namespace {

struct GraphPass {
  const char* name;
  void (*run)(StepGraph& graph, int threads);
};

// Constants show what can be simplified, what is simplified is equal more often, and what is left is fused.
constexpr GraphPass kPasses[] = {
    {"fold_constants", fold_constants},
    {"simplify", simplify},
    {"merge_common", merge_common},
    {"fuse_elementwise", fuse_elementwise},
};

// Nodes that nothing follows and whose value is not fetched were asked for as operations.
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

std::vector<bool> needed_nodes(const StepGraph& graph, std::vector<int> stack) {
  for (const StepValue fetch : graph.fetches)
    if (fetch.node >= 0) stack.push_back(fetch.node);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].schema->is_stateful()) stack.push_back(static_cast<int>(i));
  std::vector<bool> needed(graph.nodes.size(), false);
  while (!stack.empty()) {
    const int n = stack.back();
    stack.pop_back();
    if (needed[n]) continue;
    needed[n] = true;
    for (const StepValue in : graph.nodes[n].inputs) stack.push_back(in.node);
    for (const int before : graph.nodes[n].control_inputs) stack.push_back(before);
  }
  return needed;
}

// Whatever a kept node names is kept as well, so that only numbers change.
void drop_the_rest(StepGraph& graph, const std::vector<bool>& needed) {
  std::vector<int> renumbered(graph.nodes.size(), -1);
  std::vector<StepNode> kept;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!needed[i]) continue;
    renumbered[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(graph.nodes[i]));
  }
  for (StepNode& node : kept) {
    for (StepValue& in : node.inputs) in.node = renumbered[in.node];
    for (int& before : node.control_inputs) before = renumbered[before];
  }
  for (StepValue& fetch : graph.fetches)
    if (fetch.node >= 0) fetch.node = renumbered[fetch.node];
  graph.nodes = std::move(kept);
}

bool is_disabled(const GraphOptions& options, const std::string& name) {
  const auto& names = options.disabled_passes;
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> graph_pass_names() {
  std::vector<std::string> names;
  for (const GraphPass& pass : kPasses) names.push_back(pass.name);
  return names;
}

void check_graph_options(const GraphOptions& options) {
  const auto names = graph_pass_names();
  for (const std::string& disabled : options.disabled_passes) {
    if (std::find(names.begin(), names.end(), disabled) != names.end()) continue;
    std::string known;
    for (const auto& name : names) known += (known.empty() ? "" : ", ") + name;
    throw InvalidArgumentError("graph_options.disabled_passes: there is no pass \"{}\"{}; there are {}",
                               disabled, did_you_mean(disabled, names), known);
  }
}

void run_graph_passes(StepGraph& graph, const GraphOptions& options, int threads) {
  if (options.optimizer_level == OptimizerLevel::l0) return;
  const std::vector<int> ends = ends_of(graph);
  for (const GraphPass& pass : kPasses)
    if (!is_disabled(options, pass.name)) pass.run(graph, threads);
  drop_the_rest(graph, needed_nodes(graph, ends));
}

}  // namespace kolo
