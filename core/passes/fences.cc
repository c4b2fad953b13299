#include <kolo/core/passes/fences.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/device/device.h>
#include <kolo/core/passes/transfer.h>

namespace kolo {
namespace {

const RegisterOp fence_op(OpSchema(kFenceOp).stateful().no_gradient().made_by_pass());

class Fences {
 public:
  Fences(StepGraph& graph, const DeviceSet& devices) : graph_(graph) {
    for (const StepNode& node : graph.nodes) streams_.push_back(devices.find(node.device).stream());
  }

  void run() {
    const int count = static_cast<int>(graph_.nodes.size());
    for (int n = 0; n < count; ++n) {
      if (graph_.nodes[n].schema->name() == kRecvOp) continue;  // a copy comes behind what is in the stream
      add_fences(n, &StepNode::control_inputs);
      add_fences(n, &StepNode::after);
    }
  }

 private:
  using Edges = std::vector<int> StepNode::*;

  void add_fences(int n, Edges edges) {
    std::map<std::string, std::vector<int>> before;  // by device
    for (const int b : graph_.nodes[n].*edges)
      if (runs_ahead(b) && streams_[b] != streams_[n]) before[graph_.nodes[b].device].push_back(b);
    for (auto& [device, nodes] : before) {
      std::int64_t last = 0;
      for (const int b : nodes) {
        last = std::max(last, graph_.nodes[b].order);
        std::erase(graph_.nodes[n].*edges, b);
      }
      const int fence =
          graph_.add(kFenceOp, fmt::format("{}/_Fence", graph_.nodes[n].name), {}, {}, last + 1);
      graph_.nodes[fence].device = device;
      graph_.nodes[fence].*edges = std::move(nodes);
      (graph_.nodes[n].*edges).push_back(fence);
    }
  }

  // Memory that is there before the step begins is waited for by nobody.
  bool runs_ahead(int n) const {
    const OpSchema& schema = *graph_.nodes[n].schema;
    return streams_[n] != nullptr && !schema.is_variable_storage() && schema.name() != "Const" &&
           schema.name() != kFeedOp;
  }

  StepGraph& graph_;
  std::vector<Stream*> streams_;  // by node, of those that were there before
};

}  // namespace

void insert_fences(StepGraph& graph, const DeviceSet& devices) { Fences(graph, devices).run(); }

}  // namespace kolo
