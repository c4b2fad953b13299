// A step's graph as the graph passes see it: pruned, every node on the one CPU.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/device/device_name.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/prune.h>
#include <kolo/core/runtime/session.h>

namespace kolo {

inline StepGraph placed_step(const std::vector<Fetch>& fetches,
                             const std::vector<std::pair<Output, Shape>>& fed = {}) {
  StepSignature signature;
  for (const Fetch& fetch : fetches)
    signature.fetched.push_back(fetch.output), signature.targets.push_back(fetch.operation.node);
  signature.fed = fed;
  StepGraph step = prune(signature);
  for (StepNode& node : step.nodes) node.device = local_device_name("CPU", 0);
  return step;
}

inline GraphOptions only(const std::string& pass) {
  GraphOptions options;
  for (const std::string& name : graph_pass_names())
    if (name != pass) options.disabled_passes.push_back(name);
  return options;
}

/// What the optional passes ask for; they never ask for a device or for other ranks.
class StubPassContext final : public PassContext {
 public:
  explicit StubPassContext(GraphOptions options) : options_(std::move(options)) {}
  GraphOptions graph_options() const override { return options_; }
  int intra_op_threads() const override { return 1; }
  const DeviceSet& devices() const override { throw InternalError("a pass asked for devices"); }
  void place(StepGraph&) override {}
  void compare_ranks(const StepGraph&) override {}
  std::shared_ptr<StepVote> vote(const Node&) override { return nullptr; }

 private:
  GraphOptions options_;
};

/// The optional passes, as `options` leave them.
inline void rewrite(StepGraph& step, GraphOptions options) {
  StubPassContext context(std::move(options));
  run_graph_passes(step, context);
}

/// The step after one pass alone, without what it left unused.
inline StepGraph after(const std::string& pass, const std::vector<Fetch>& fetches,
                       const std::vector<std::pair<Output, Shape>>& fed = {}) {
  StepGraph step = placed_step(fetches, fed);
  rewrite(step, only(pass));
  return step;
}

/// Ops of the nodes, in the order in which they run.
inline std::vector<std::string> ops_of(const StepGraph& step) {
  std::vector<std::string> ops;
  for (const int n : topological_order(step)) ops.push_back(step.nodes[n].schema->name());
  return ops;
}

inline const StepNode& node_named(const StepGraph& step, const std::string& name) {
  for (const StepNode& node : step.nodes)
    if (node.name == name) return node;
  throw NotFoundError("no node {}", name);
}

inline const std::string& input_of(const StepGraph& step, const std::string& name, int i = 0) {
  return step.nodes[node_named(step, name).inputs.at(i).node].name;
}

inline std::vector<std::string> control_inputs_of(const StepGraph& step, const std::string& name) {
  std::vector<std::string> names;
  for (const int before : node_named(step, name).control_inputs) names.push_back(step.nodes[before].name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace kolo
