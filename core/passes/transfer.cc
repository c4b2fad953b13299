#include <kolo/core/passes/transfer.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
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
        const bool on_host = is_cpu(node.device) || node.schema->is_host_input(static_cast<int>(k));
        if (!must_travel(in, node, on_host)) continue;
        if (node.schema->input_spec(static_cast<int>(k)).updated)
          throw InternalError("node \"{}\" on {} updates a variable on {}", node.name, node.device,
                              graph_.nodes[in.node].device);
        if (is_placed_copy(n)) {
          receive_in_its_place(n);
          continue;
        }
        const StepValue received =
            receive(in, on_host && !is_cpu(node.device) ? host_ : node.device, node.order);
        graph_.nodes[n].inputs[k] = received;  // `node` may have moved
      }
    for (StepValue& fetch : graph_.fetches)
      if (fetch.node >= 0 && !lies_on_host(graph_, fetch)) bring_home(fetch);
  }

 private:
  // Last of all where nothing of the host waits for it, so that it stands in the way of no kernel's launch.
  // What lies in a variable is read before the next update.
  void bring_home(StepValue& fetch) {
    const bool is_variable = graph_.nodes[graph_.memory_root(fetch).node].schema->is_variable_storage();
    const std::size_t before = received_.size();
    fetch = receive(fetch, host_, graph_.nodes[fetch.node].order + 1);
    if (received_.size() == before || is_variable) return;
    graph_.nodes[fetch.node].order = std::numeric_limits<std::int64_t>::max() / 2;
  }

  // Fed from another address in each step, though of the same GPU: what reads a copy can be kept.
  bool is_fed(StepValue v) const {
    return graph_.nodes[graph_.memory_root(v).node].schema->name() == kFeedOp;
  }

  // on_host: that is where the reader looks for it.
  bool must_travel(StepValue v, const StepNode& reader, bool on_host) const {
    const bool lies_here = lies_on_host(graph_, v);
    const bool same_device = graph_.nodes[v.node].device == reader.device;
    if (!on_host && !lies_here && is_fed(v)) return true;
    if (!on_host) return lies_here ? !same_device || !reader.schema->is_view() : !same_device;
    if (!lies_here) return true;
    // What a pass has placed lies where all of the host reach it.
    return is_cpu(reader.device) && !same_device && graph_.placements.count(graph_.memory_root(v)) == 0;
  }

  // A gradient of a GPU on its way into its bucket, say.
  bool is_placed_copy(int n) const {
    return graph_.nodes[n].schema->name() == kCopyOp && is_cpu(graph_.nodes[n].device) &&
           graph_.placements.count({n, 0}) > 0 && !lies_on_host(graph_, graph_.nodes[n].inputs[0]);
  }

  // Nobody else may receive what is to lie there: it will be overwritten.
  void receive_in_its_place(int n) {
    const StepNode copy = graph_.nodes[n];  // nodes move
    const StepValue source = on_its_device(copy.inputs[0], copy.device, copy.order);
    const StepValue received = add_pair(source, copy.device, copy.order, copy.name);
    graph_.nodes[received.node].control_inputs = copy.control_inputs;
    graph_.placements[received] = graph_.placements.at({n, 0});
    graph_.placements.erase({n, 0});
    graph_.replace_uses({n, 0}, received);
    graph_.nodes[n].inputs.clear();
    graph_.retire(n);
  }

  // Who sends ahead puts values on the stream of copies to their GPU, behind which that GPU's own copy is;
  // streams of copies to elsewhere wait for nodes alone.
  StepValue on_its_device(StepValue v, const std::string& to, std::int64_t reader) {
    const std::string device = graph_.nodes[v.node].device;  // a copy, because nodes move
    return is_fed(v) && !lies_on_host(graph_, v) && to != device ? receive(v, device, reader) : v;
  }

  // to: a copy, because nodes move when others are added.
  StepValue receive(StepValue v, std::string to, std::int64_t reader) {
    v = on_its_device(v, to, reader);
    // With the value and the device it says which transfer a reader takes.
    const std::int64_t update = versions_.last_seen_by(graph_, v, reader);
    const auto [found, is_new] = received_.try_emplace({v, to, update});
    if (is_new) found->second = add_pair(v, to, std::max(graph_.nodes[v.node].order, update));
    return found->second;
  }

  // behind: the order that both nodes come after. for_node: whose own pair it is; "" where readers share it.
  StepValue add_pair(StepValue v, const std::string& to, std::int64_t behind,
                     const std::string& for_node = "") {
    const bool on_host = lies_on_host(graph_, v);
    const std::string& device = graph_.nodes[v.node].device;
    const std::string from = on_host && !is_cpu(device) ? host_ : device;
    const std::int64_t order = behind + 1;
    const std::string name = fmt::format("{}:{}", graph_.nodes[v.node].name, v.output);
    const std::string tensor = for_node.empty() ? name : for_node;
    const AttrMap key = {{"tensor_name", name}, {"send_device", from}, {"recv_device", to}};
    const bool shared = is_cpu(to) && on_host;
    const int send = graph_.add(kSendOp, fmt::format("{}/_Send/{}", tensor, local(to)), {v}, key, order);
    const int recv = graph_.add(shared ? kHostRecvOp : kRecvOp, fmt::format("{}/_Recv/{}", tensor, local(to)),
                                {{send, 0}}, key, order + 1);
    graph_.nodes[recv].device = to;
    return {recv, 0};
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
  const auto placement = graph.placements.find(root);
  if (placement != graph.placements.end() && !placement->second.on_host) return false;
  return is_cpu(node.device) || placement != graph.placements.end() ||
         node.schema->is_host_output(root.output, node.dtypes[root.output]);
}

void insert_transfers(StepGraph& graph, const std::string& host) {
  const bool needed = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const StepNode& node) { return node.device != host; });
  if (needed) Transfers(graph, host).run();
}

}  // namespace kolo
