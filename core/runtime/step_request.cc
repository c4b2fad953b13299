#include <kolo/core/runtime/step_request.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo::detail {
namespace {

// "op:0" or "op"; no index where the text behind the colon is none.
struct TensorName {
  std::string op;
  bool has_colon;
  std::optional<std::int64_t> index;
};

TensorName parse(const std::string& name) {
  const auto colon = name.rfind(':');
  if (colon == std::string::npos) return {name, false, 0};
  return {name.substr(0, colon), true, parse_int64(name.substr(colon + 1))};
}

std::string no_such_tensor(const std::string& name, const TensorName& parts, const Node* node) {
  if (!parts.index)
    return fmt::format("'{}' is not the name of a tensor; the form is '<operation>:<output index>'", name);
  if (node == nullptr && !parts.has_colon)
    return fmt::format("The name '{}' refers to an Operation not in the graph.", name);
  if (node == nullptr)
    return fmt::format(
        "The name '{}' refers to a Tensor which does not exist. The operation, '{}', does not exist in the "
        "graph.",
        name, parts.op);
  return fmt::format(
      "The name '{}' refers to a Tensor which does not exist. The operation, '{}', exists but only has {} "
      "outputs.",
      name, parts.op, node->num_outputs());
}

bool has_output(const Node& node, std::optional<std::int64_t> index) {
  return index && *index >= 0 && *index < node.num_outputs();
}

// The texts of the session come first, then those of TensorFlow's client, which knows what the user wrote.
Output find_feed(const Graph& graph, const std::string& name) {
  const TensorName parts = parse(name);
  const Node* node = graph.find_node(parts.op);
  if (node == nullptr)
    throw NotFoundError("FeedInputs: unable to find feed output {}. Cannot interpret feed as Tensor: {}",
                        name, no_such_tensor(name, parts, node));
  if (!has_output(*node, parts.index))
    throw InvalidArgumentError(
        "FeedInputs: {} should have output index < {}. Cannot interpret feed as Tensor: {}", name,
        node->num_outputs(), no_such_tensor(name, parts, node));
  return node->output(static_cast<int>(*parts.index));
}

void check_has_outputs(const Node& node, const std::string& name) {
  if (node.num_outputs() == 0)
    throw InvalidArgumentError(
        "Tried to fetch data for '{}', which produces no output. To run the operation alone, ask for '{}'.",
        name, node.name());
}

Fetch find_fetch(const Graph& graph, const std::string& name) {
  const TensorName parts = parse(name);
  const Node* node = graph.find_node(parts.op);
  if (node == nullptr)
    throw NotFoundError(
        "FetchOutputs node {}: not found. Fetch argument {} cannot be interpreted as a Tensor. ({})", name,
        name, no_such_tensor(name, parts, node));
  if (!parts.has_colon) return Operation(node);
  check_has_outputs(*node, name);
  if (!has_output(*node, parts.index))
    throw InvalidArgumentError(
        "FetchOutputs {}: output index too large, must be < {}. Fetch argument {} cannot be interpreted as a "
        "Tensor. ({})",
        name, node->num_outputs(), name, no_such_tensor(name, parts, node));
  return node->output(static_cast<int>(*parts.index));
}

Fetch checked_fetch(const Graph& graph, const Fetch& asked) {
  Fetch fetch = asked.name.empty() ? asked : find_fetch(graph, asked.name);
  if (!fetch.operation)
    throw InvalidArgumentError(
        "Fetch argument <none> cannot be interpreted as a Tensor. (It names neither a tensor nor an "
        "operation.)");
  const Node& node = *fetch.operation.node;
  const std::string name = fetch.output ? fetch.output.name() : node.name();
  if (&node.graph() != &graph)
    throw InvalidArgumentError(
        "Fetch argument {} cannot be interpreted as a Tensor. ({} {} is not an "
        "element of this graph.)",
        name, fetch.output ? "Tensor" : "Operation", name);
  if (!fetch.output) return fetch;
  check_has_outputs(node, name);
  if (fetch.output.index < 0 || fetch.output.index >= node.num_outputs())
    throw InvalidArgumentError("FetchOutputs {}: output index too large, must be < {}", name,
                               node.num_outputs());
  return fetch;
}

std::vector<Fetch> checked_targets(const Graph& graph, const std::vector<Fetch>& targets) {
  std::vector<Fetch> found;
  std::string missing;
  for (const Fetch& target : targets) {
    const Node* node = target.name.empty() ? target.operation.node : graph.find_node(target.name);
    if (node == nullptr) {
      missing += (missing.empty() ? "" : " ") + (target.name.empty() ? "<none>" : target.name);
      continue;
    }
    if (&node->graph() != &graph)
      throw InvalidArgumentError("Operation {} is not an element of this graph.", node->name());
    found.push_back(Operation(node));
  }
  if (!missing.empty()) throw NotFoundError("PruneForTargets: Some target nodes not found: {}", missing);
  return found;
}

Feeds checked_feeds(const Graph& graph, const Feeds& feeds) {
  Feeds checked;
  std::set<std::pair<int, int>> seen;
  for (const auto& [target, value] : feeds) {
    const Output tensor = checked_feed_target(graph, target);
    if (!seen.insert({tensor.node->id(), tensor.index}).second)
      throw InvalidArgumentError("Endpoint \"{}\" fed more than once.", tensor.name());
    check_feed_value(tensor, value);
    checked.emplace_back(tensor, value);
  }
  return checked;
}

}  // namespace

Output checked_feed_target(const Graph& graph, const FeedTarget& target) {
  const Output tensor = target.tensor_name.empty() ? Output(target) : find_feed(graph, target.tensor_name);
  if (!tensor) throw InvalidArgumentError("a feed names no tensor");
  if (&tensor.node->graph() != &graph)
    throw InvalidArgumentError("Tensor {} is not an element of this graph.", tensor.name());
  if (tensor.index < 0 || tensor.index >= tensor.node->num_outputs())
    throw InvalidArgumentError("FeedInputs: {} should have output index < {}", tensor.name(),
                               tensor.node->num_outputs());
  if (!tensor.node->schema().is_feedable())
    throw InvalidArgumentError("Tensor {} may not be fed.", tensor.name());
  return tensor;
}

void check_feed_value(const Output& target, const Tensor& value) {
  if (!value) throw InvalidArgumentError("the tensor fed for '{}' is empty: it has no buffer", target.name());
  if (value.dtype() != target.dtype())
    throw InvalidArgumentError("Cannot feed value of type {} for Tensor '{}', which has type {}",
                               value.dtype(), target.name(), target.dtype());
  if (!value.shape().is_compatible_with(target.shape()))
    throw InvalidArgumentError("Cannot feed value of shape {} for Tensor '{}', which has shape '{}'",
                               value.shape(), target.name(), target.shape());
}

StepRequest checked_request(const Graph& graph, const std::vector<Fetch>& fetches, const Feeds& feeds,
                            const std::vector<Fetch>& targets) {
  if (graph.num_nodes() == 0)
    throw FailedPreconditionError(
        "The Session graph is empty.  Add operations to the graph before calling run().");
  if (fetches.empty() && targets.empty())
    throw InvalidArgumentError("Must specify at least one target to fetch or execute.");
  StepRequest request;
  request.feeds = checked_feeds(graph, feeds);
  for (const Fetch& fetch : fetches) request.fetches.push_back(checked_fetch(graph, fetch));
  request.targets = checked_targets(graph, targets);
  return request;
}

PlanCache::Key key_of(const StepRequest& request, const DeviceSet* devices) {
  PlanCache::Key key;
  for (const auto* list : {&request.fetches, &request.targets})
    for (const Fetch& fetch : *list) {
      key.push_back(fetch.operation.node->id());
      key.push_back(fetch.output ? fetch.output.index : -1);
    }
  for (const auto& [value, tensor] : request.feeds) {
    // No dimension, index or id is −2 or −3: where one part ends and the next begins is always clear.
    key.push_back(-2);
    key.push_back(value.node->id());
    key.push_back(value.index);
    key.insert(key.end(), tensor.shape().dims().begin(), tensor.shape().dims().end());
    const Device* const gpu = devices == nullptr ? nullptr : devices->holder_of(tensor);
    if (gpu != nullptr) key.insert(key.end(), {-3, gpu->spec().index.value_or(0)});
  }
  return key;
}

StepSignature signature_of(const StepRequest& request, const DeviceSet* devices) {
  StepSignature signature;
  for (const auto* list : {&request.fetches, &request.targets})
    for (const Fetch& fetch : *list) {
      signature.fetched.push_back(fetch.output);
      signature.targets.push_back(fetch.operation.node);
    }
  for (const auto& [value, tensor] : request.feeds) {
    const Device* const gpu = devices == nullptr ? nullptr : devices->holder_of(tensor);
    if (gpu != nullptr) signature.fed_on[static_cast<int>(signature.fed.size())] = gpu->name();
    signature.fed.push_back({value, tensor.shape()});
  }
  return signature;
}

void check_results(const Plan& plan, const Frame& frame, const StepRequest& request) {
  for (std::size_t i = 0; i < request.fetches.size(); ++i) {
    const Fetch& fetch = request.fetches[i];
    if (!plan.was_computed(frame, i))
      throw InvalidArgumentError(
          "Retval[{}] does not have value: {} is of a branch that this run did not take", i,
          fetch.output ? fetch.output.name() : fetch.operation.name());
  }
}

std::shared_ptr<Plan> PlanCache::find(const Key& key) {
  MutexLock lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void PlanCache::insert(const Key& key, std::shared_ptr<Plan> plan) {
  Entries dropped;  // destroyed without the lock: freeing a plan's memory takes its time
  MutexLock lock(mutex_);
  entries_.emplace_front(key, std::move(plan));
  by_key_[key] = entries_.begin();
  if (entries_.size() <= kMostPlans) return;
  by_key_.erase(entries_.back().first);
  dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
}

void PlanCache::clear() {
  Entries dropped;
  MutexLock lock(mutex_);
  by_key_.clear();
  dropped.swap(entries_);
}

}  // namespace kolo::detail
