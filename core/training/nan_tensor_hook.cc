#include <kolo/core/training/nan_tensor_hook.h>

#include <fmt/format.h>

#include <exception>
#include <set>
#include <string_view>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/ops/debugging.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/passes/update_guards.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/core/training/global_step.h>
#include <kolo/core/training/non_finite.h>

namespace kolo {
namespace {

constexpr char kText[] = "NaN loss during training.";

bool is_fed(const Feeds& feeds, const Output& tensor) {
  for (const auto& [target, value] : feeds)
    if (static_cast<const Output&>(target) == tensor || target.tensor_name == tensor.name()) return true;
  return false;
}

struct OlderNode {
  bool operator()(const Node* a, const Node* b) const { return a->id() < b->id(); }
};
using Nodes = std::set<const Node*, OlderNode>;

// What `loss` is computed from, as far as it is not fed, oldest first: inputs come before what they are for.
Nodes nodes_behind(const Output& loss, const Feeds& feeds) {
  Nodes seen;
  std::vector<const Node*> stack{loss.node};
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second) continue;
    for (const Output& input : node->inputs())
      if (!is_fed(feeds, input)) stack.push_back(input.node);
    for (const Node* before : node->control_inputs()) stack.push_back(before);
  }
  return seen;
}

// What can be computed by this rank alone: the others do not come to an op that all make together, which is
// stateful; and only what no branch of a `cond` skips can be asked for.
Outputs values_to_look_at(const Nodes& nodes, const Feeds& feeds) {
  const bool alone = world_group().size() == 1;
  Outputs values;
  std::set<const Node*> out_of_reach;
  for (const Node* node : nodes) {
    const OpSchema& schema = node->schema();
    const bool draws_alone = schema.is_variable_storage() || node->attrs().count("seed") > 0;
    bool reachable = node->branch() == nullptr && (alone || !schema.is_stateful() || draws_alone);
    for (const Output& input : node->inputs())
      reachable &= out_of_reach.count(input.node) == 0 || is_fed(feeds, input);
    for (const Node* before : node->control_inputs()) reachable &= out_of_reach.count(before) == 0;
    if (!reachable) out_of_reach.insert(node);
    for (int i = 0; reachable && !schema.is_variable_storage() && i < node->num_outputs(); ++i)
      if (is_floating(node->output_dtype(i))) values.push_back({node, i});
  }
  return values;
}

std::string in_variables(Session& session, const Nodes& nodes) {
  std::vector<Variable> variables = global_variables(session.graph());
  for (const Variable& variable : local_variables(session.graph())) variables.push_back(variable);
  for (const Variable& variable : variables) {
    const VariableStorage& storage = detail::storage_of(session, variable);
    if (!storage.initialized || nodes.count(variable.ref().node) == 0) continue;
    const std::string text = detail::non_finite_text(storage.value);
    if (!text.empty())
      return fmt::format("it comes from variable \"{}\", which holds {} since an earlier step",
                         variable.name(), text);
  }
  return "";
}

// Which came first of what made the loss: a fed value, a variable or an op.
std::string origin(Session& session, const Output& loss, const Feeds& feeds) {
  for (const auto& [target, value] : feeds) {
    const std::string text = detail::non_finite_text(value);
    if (!text.empty())
      return fmt::format("it comes from what was fed for \"{}\": {}",
                         target.node == nullptr ? target.tensor_name : target.name(), text);
  }
  const Nodes nodes = nodes_behind(loss, feeds);
  if (std::string text = in_variables(session, nodes); !text.empty()) return text;
  const Outputs values = values_to_look_at(nodes, feeds);
  const auto results = session.run(std::vector<Fetch>(values.begin(), values.end()), feeds);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string text = detail::non_finite_text(results[i]);
    if (!text.empty())
      return fmt::format("the first op with a non-finite output is {}: {}", describe(*values[i].node), text);
  }
  return "computed once more, with other random numbers, it is finite";
}

std::string origin_or_reason(Session& session, const Output& loss, const Feeds& feeds) {
  try {
    return origin(session, loss, feeds);
  } catch (const std::exception& error) {
    return fmt::format("the op that it comes from was not found: {}", error.what());
  }
}

std::string next_step_text(Session& session) {
  const Variable step = find_global_step(session.graph());
  return step ? fmt::format(" in step {}", read_global_step(session, step) + 1) : "";
}

}  // namespace

void NanTensorHook::begin(Graph& graph) {
  if (!loss_ || &loss_.node->graph() != &graph)
    throw InvalidArgumentError("NanTensorHook: the loss is not of the graph that is trained");
  if (!options_.fail_on_nan_loss || guard_) return;
  const Output checked = check_numerics(Scope(graph).named("nan_tensor_hook"), loss_, kText);
  guard_ = Operation(checked);
  graph.add_to_collection(kUpdateGuards, *checked.node);
}

SessionRunArgs NanTensorHook::before_run(RunContext&) {
  SessionRunArgs args;
  if (guard_) args.fetches.emplace_back(guard_);
  else args.fetches.emplace_back(loss_);
  return args;
}

void NanTensorHook::after_run(RunContext& context, const RunValues& values) {
  if (guard_ || !detail::count_non_finite(values.results.at(0)).any()) return;
  log_error("Model diverged with loss = NaN.");
  context.request_stop();
}

void NanTensorHook::after_failure(RunContext& context, const SessionRunArgs& made, const Error& error) {
  const std::string_view text = error.what();
  if (!guard_ || error.code() != Code::invalid_argument || text.find(kText) == std::string_view::npos) return;
  log_error("Model diverged with loss = NaN.");
  Session& session = context.session();
  throw FailedPreconditionError("{} The loss \"{}\" is not finite{}, which was not applied; {}", kText,
                                loss_.name(), next_step_text(session),
                                origin_or_reason(session, loss_, made.feeds));
}

}  // namespace kolo
