#include <kolo/core/runtime/compile.h>

#include <string>
#include <utility>
#include <vector>

#include <kolo/core/kernels/transfer.h>
#include <kolo/core/passes/graph_passes.h>
#include <kolo/core/passes/order_updates.h>
#include <kolo/core/passes/transfer.h>
#include <kolo/core/runtime/loops.h>

namespace kolo {
namespace {

// Nodes that passes have made of nothing go to the host; each copy learns of the two devices that it joins.
void join_devices(StepGraph& graph, const DeviceSet& devices, const std::string& host) {
  for (StepNode& node : graph.nodes)
    if (node.device.empty()) node.device = host;
  insert_transfers(graph, host);
  for (StepNode& node : graph.nodes)
    if (node.schema->name() == kRecvOp)
      node.resource = std::make_shared<TransferEnds>(TransferEnds{
          devices.find(node.attrs.at("send_device").get<std::string>()), devices.find(node.device)});
}

}  // namespace

std::unique_ptr<Plan> compile_plan(const StepSignature& signature, PlanEnvironment& environment) {
  StepGraph graph = prune(signature);
  environment.place(graph);
  run_graph_passes(graph, environment.graph_options(), environment.intra_op_threads());
  StepVotes votes;
  for (const StepNode& node : graph.nodes)
    if (node.origin != nullptr && vote_factory(node.schema->name()) != nullptr)
      if (auto vote = environment.vote(*node.origin)) votes.push_back(std::move(vote));
  // A plain session compares at the first run that reaches a schedule; where it was done before, this costs
  // nothing.
  for (const auto& vote : votes) vote->compare();
  for (const Pass pass : registered_passes()) pass(graph, environment);
  const Device* const host = environment.devices().host();
  const std::string host_name = host != nullptr ? host->name() : graph.nodes[0].device;
  join_devices(graph, environment.devices(), host_name);
  order_updates(graph);
  for (StepNode& node : graph.nodes)
    if (auto loop = compile_loop(graph, node, signature.loop_depth, [&](const StepSignature& iteration) {
          return compile_plan(iteration, environment);
        }))
      node.resource = std::move(loop);
  return std::make_unique<Plan>(std::move(graph), environment, std::move(votes), host_name);
}

}  // namespace kolo
