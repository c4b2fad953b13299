#include <kolo/core/cluster/worker/partition.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/core/cluster/worker/client_iterator.h>
#include <kolo/core/cluster/worker/net_ops.h>
#include <kolo/core/cluster/worker/part_graph_internal.h>
#include <kolo/core/device/device_name.h>
#include <kolo/core/graph/loop_nodes.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/prune.h>
#include <kolo/core/passes/variable_uses.h>

namespace kolo::detail {
namespace {

std::string host_of_task(const std::string& task) { return task + "/device:CPU:0"; }

// Makes every edge between two tasks a pair of nodes, in a step of its own.
class Cut {
 public:
  Cut(const StepGraph& step, const PartitionOptions& options)
      : options_(options),
        graph_(with_kept_values(step)),
        versions_(graph_),
        skipped_(can_be_skipped(graph_)) {
    for (const StepNode& node : graph_.nodes) names_.take(node.name);
    for (const StepNode& node : graph_.nodes)
      if (node.origin != nullptr)
        for (const Node* inner : nodes_in_loop(*node.origin)) names_.take(inner->name());
  }

  std::vector<StepPart> run() {
    for (const StepNode& node : graph_.nodes) check(node);
    const int count = static_cast<int>(graph_.nodes.size());
    for (int n = 0; n < count; ++n) {
      for (std::size_t k = 0; k < graph_.nodes[n].inputs.size(); ++k) bring_input(n, k);
      for (std::size_t k = 0; k < graph_.nodes[n].control_inputs.size(); ++k) bring_control_input(n, k);
    }
    for (StepValue& fetch : graph_.fetches)
      if (fetch.node >= 0) fetch = to_be_fetched(fetch);
    name_feeds();
    return PartGraphs(graph_, options_, std::move(parts_)).make();
  }

 private:
  static StepGraph with_kept_values(const StepGraph& step) {
    StepGraph graph = step;
    // A view of a variable is what it was when it was made, wherever its readers are.
    keep_read_values(graph);
    return graph;
  }

  void check(const StepNode& node) const {
    check_op(node.name, *node.schema, task_of_device(node.device));
    if (node.origin == nullptr) return;
    for (const Node* inner : nodes_in_loop(*node.origin))
      check_op(inner->name(), inner->schema(), task_of_device(node.device));
  }

  void check_op(const std::string& name, const OpSchema& schema, const std::string& task) const {
    if (schema.is_reducing_over_ranks())
      throw UnimplementedError("{} ({}) reduces over MPI ranks and cannot run in a session on {}", name,
                               schema.name(), options_.target);
    const bool is_of_client = schema.name() == kClientIteratorOp;
    if (is_of_client || (schema.name() == "IteratorNext" && task != options_.client_task))
      throw InvalidArgumentError("{} (IteratorNext) reads from the client's process; feed its values", name);
  }

  std::string task(int node) const { return task_of_device(graph_.nodes[node].device); }

  void bring_input(int n, std::size_t k) {
    const StepValue in = graph_.nodes[n].inputs[k];
    const std::string to = task(n);
    if (task(in.node) == to) return;
    const StepNode& node = graph_.nodes[n];
    const auto& spec = node.schema->input_spec(static_cast<int>(k));
    if (spec.updated || !spec.handle_of.empty())
      throw InternalError("node \"{}\" on {} uses what \"{}\" holds on {}", node.name, node.device,
                          graph_.nodes[in.node].name, graph_.nodes[in.node].device);
    const StepValue received = receive(in, to, node.order);
    graph_.nodes[n].inputs[k] = received;  // `node` may have moved
  }

  void bring_control_input(int n, std::size_t k) {
    const int before = graph_.nodes[n].control_inputs[k];
    const std::string to = task(n);
    if (task(before) == to) return;
    const auto [found, is_new] = signals_.try_emplace({before, to}, -1);
    if (is_new) {
      const std::int64_t order = graph_.nodes[before].order + 1;
      const int done = graph_.add("Const", names_.unique(graph_.nodes[before].name + "/_done"), {},
                                  {{"value", Tensor(DType::f32, {0})}, {"dtype", DType::f32}}, order);
      graph_.nodes[done].device = host_of_task(task(before));
      graph_.nodes[done].control_inputs = {before};
      found->second = add_pair({done, 0}, before, to, "^" + graph_.nodes[before].name, 0, order).node;
    }
    graph_.nodes[n].control_inputs[k] = found->second;
  }

  StepValue to_be_fetched(StepValue v) {
    const std::int64_t order = graph_.nodes[v.node].order + 1;
    if (task(v.node) != options_.master) return receive(v, options_.master, order);
    return is_of_variable(v) ? copy_of(v, "/fetched", order) : v;
  }

  bool is_of_variable(StepValue v) const { return variable_of(graph_, v) != nullptr; }

  StepValue copy_of(StepValue v, const char* suffix, std::int64_t order) {
    return {graph_.add("Copy", names_.unique(graph_.nodes[v.node].name + suffix), {v}, {}, order), 0};
  }

  StepValue receive(StepValue v, const std::string& to, std::int64_t reader) {
    const std::int64_t update = versions_.last_seen_by(graph_, v, reader);
    const auto [found, is_new] = received_.try_emplace({v, to, update});
    if (!is_new) return found->second;
    const std::int64_t behind = std::max(graph_.nodes[v.node].order, update);
    const int updates = versions_.seen_by(graph_, v, reader);
    const StepValue sent = is_of_variable(v) ? copy_of(v, "/_sent", behind + 1) : v;
    const std::string name = fmt::format("{}:{}", graph_.nodes[v.node].name, v.output);
    return found->second = add_pair(sent, v.node, to, name, updates, behind + 1);
  }

  // of: the node whose value or end is sent.
  StepValue add_pair(StepValue sent, int of, const std::string& to, const std::string& tensor, int updates,
                     std::int64_t behind) {
    const std::string from = task(of), name = graph_.nodes[of].name;
    const std::string& device = graph_.nodes[of].device;
    const std::string key = to_string({.send_device = device,
                                       .incarnation = options_.incarnation(device),
                                       .recv_device = host_of_task(to),
                                       .tensor = tensor,
                                       .updates = updates});
    const bool conditional = skipped_[of];
    std::vector<StepValue> inputs = {sent};
    if (conditional) inputs.push_back(always(from));
    const int send = graph_.add(kNetSendOp, names_.unique(name + "/_NetSend"), std::move(inputs),
                                {{"key", key}}, behind + 1);
    graph_.nodes[send].device = host_of_task(from);
    const int recv =
        graph_.add(conditional ? kNetRecvIfOp : kNetRecvOp, names_.unique(name + "/_NetRecv"), {},
                   {{"key", key}, {"dtype", graph_.dtype(sent)}, {"shape", graph_.shape(sent)}}, behind + 2);
    graph_.nodes[recv].device = host_of_task(to);
    parts_[from].sends[to].push_back(key);
    parts_[to].receives[from].push_back(key);
    return {recv, 0};
  }

  StepValue always(const std::string& task) {
    const auto [found, is_new] = always_.try_emplace(task, -1);
    if (is_new) {
      found->second = graph_.add("Const", names_.unique("always"), {},
                                 {{"value", Tensor::scalar(false)}, {"dtype", DType::boolean}}, -1);
      graph_.nodes[found->second].device = host_of_task(task);
    }
    return {found->second, 0};
  }

  // Several values of one op may be fed, and the op itself be part of the step.
  void name_feeds() {
    std::set<std::string> used;
    for (const StepNode& node : graph_.nodes)
      if (node.schema->name() != kFeedOp) used.insert(node.name);
    for (StepNode& node : graph_.nodes)
      if (node.schema->name() == kFeedOp && !used.insert(node.name).second)
        node.name = names_.unique(node.name + "/_fed");
  }

  const PartitionOptions& options_;
  StepGraph graph_;
  const VariableVersions versions_;
  const std::vector<bool> skipped_;
  UniqueNames names_;
  std::map<std::tuple<StepValue, std::string, std::int64_t>, StepValue> received_;
  std::map<std::pair<int, std::string>, int> signals_;
  std::map<std::string, int> always_;
  std::map<std::string, StepPart> parts_;
};

}  // namespace

void UniqueNames::take(const std::string& name) { taken_.insert(lower_case(name)); }

std::string UniqueNames::unique(const std::string& wished) {
  std::string name = wished;
  for (int i = 1; !taken_.insert(lower_case(name)).second; ++i) name = fmt::format("{}_{}", wished, i);
  return name;
}

std::vector<StepPart> partition(const StepGraph& step, const PartitionOptions& options) {
  return Cut(step, options).run();
}

}  // namespace kolo::detail
