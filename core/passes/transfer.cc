#include <kolo/core/passes/transfer.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/passes/variable_uses.h>

namespace kolo {
namespace {

OpSchema transfer_schema(const char* name) {
  return OpSchema(name)
      .required_attr("tensor_name", "")
      .required_attr("send_device", "")
      .required_attr("recv_device", "")
      .output("y")
      .no_gradient();
}

const RegisterOp send_op(transfer_schema(kSendOp).input("tensor").view());
const RegisterOp recv_op(transfer_schema(kRecvOp).input("sent").stateful());
const RegisterOp host_recv_op(transfer_schema(kHostRecvOp).input("sent").view());

bool is_cpu(const std::string& device) { return device.find("/device:CPU:") != std::string::npos; }

std::string local(const std::string& device) {
  const auto at = device.rfind("device:");
  return at == std::string::npos ? device : device.substr(at + 7);
}

class Transfers {
 public:
  Transfers(StepGraph& graph, const std::string& host) : graph_(graph), host_(host), versions_(graph) {}

  void run() {
    const int count = static_cast<int>(graph_.nodes.size());
    for (int n = 0; n < count; ++n)
      for (std::size_t k = 0; k < graph_.nodes[n].inputs.size(); ++k) {
        const StepNode& node = graph_.nodes[n];
        const StepValue in = node.inputs[k];
        if (!must_travel(in, node.device)) continue;
        if (node.schema->input_spec(static_cast<int>(k)).updated)
          throw InternalError("node \"{}\" on {} updates a variable on {}", node.name, node.device,
                              graph_.nodes[in.node].device);
        const StepValue received = receive(in, node.device, node.order);
        graph_.nodes[n].inputs[k] = received;  // `node` may have moved
      }
    for (StepValue& fetch : graph_.fetches)
      if (fetch.node >= 0 && !lies_on_host(graph_, fetch))
        fetch = receive(fetch, host_, graph_.nodes[fetch.node].order + 1);
  }

 private:
  bool must_travel(StepValue v, const std::string& to) const {
    // What a pass has placed lies where all who read it reach it.
    return graph_.nodes[v.node].device != to && graph_.placements.count(graph_.memory_root(v)) == 0;
  }

  // to: a copy, because nodes move when others are added.
  StepValue receive(StepValue v, std::string to, std::int64_t reader) {
    // With the value and the device it says which transfer a reader takes.
    const std::int64_t update = versions_.last_seen_by(graph_, v, reader);
    const auto [found, is_new] = received_.try_emplace({v, to, update});
    if (!is_new) return found->second;
    const std::string from = graph_.nodes[v.node].device;
    const std::int64_t order = std::max(graph_.nodes[v.node].order, update) + 1;
    const std::string tensor = fmt::format("{}:{}", graph_.nodes[v.node].name, v.output);
    const AttrMap key = {{"tensor_name", tensor}, {"send_device", from}, {"recv_device", to}};
    const bool shared = is_cpu(to) && lies_on_host(graph_, v);
    const int send = graph_.add(kSendOp, fmt::format("{}/_Send/{}", tensor, local(to)), {v}, key, order);
    const int recv = graph_.add(shared ? kHostRecvOp : kRecvOp, fmt::format("{}/_Recv/{}", tensor, local(to)),
                                {{send, 0}}, key, order + 1);
    graph_.nodes[recv].device = to;
    return found->second = {recv, 0};
  }

  StepGraph& graph_;
  const std::string& host_;
  const VariableVersions versions_;
  std::map<std::tuple<StepValue, std::string, std::int64_t>, StepValue> received_;
};

}  // namespace

std::string host_of(const StepGraph& graph, const DeviceSet& devices) {
  const Device* const host = devices.host();
  return host != nullptr ? host->name() : graph.nodes[0].device;
}

bool lies_on_host(const StepGraph& graph, StepValue value) {
  const StepValue root = graph.memory_root(value);
  const StepNode& node = graph.nodes[root.node];
  return is_cpu(node.device) || graph.placements.count(root) > 0 ||
         node.schema->is_host_output(root.output, node.dtypes[root.output]);
}

void insert_transfers(StepGraph& graph, const std::string& host) {
  const bool needed = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const StepNode& node) { return node.device != host; });
  if (needed) Transfers(graph, host).run();
}

}  // namespace kolo
