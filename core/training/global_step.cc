#include <kolo/core/training/global_step.h>

#include <algorithm>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/graph/node.h>
#include <kolo/core/graph/nodes_behind.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session_variables.h>

namespace kolo {

std::int64_t step_of(const Tensor& value) {
  return value.dtype() == DType::i32 ? value.value<std::int32_t>() : value.value<std::int64_t>();
}

std::int64_t read_global_step(Session& session, const Variable& step) {
  const Tensor value = detail::value_of(session, step);
  if (!value) throw FailedPreconditionError("Attempting to use uninitialized value {}", step.name());
  return step_of(value);
}

Variable require_global_step(const Graph& graph, const std::string& user) {
  const Variable step = find_global_step(graph);
  if (!step) throw FailedPreconditionError("Global step should be created to use {}.", user);
  return step;
}

namespace detail {
namespace {

bool counts(const std::vector<Operation>& operations, const Variable& step) {
  std::vector<const Node*> targets;
  for (const Operation& operation : operations) targets.push_back(operation.node);
  return std::ranges::any_of(nodes_of_run(targets), [&step](const auto& entry) {
    const Node& node = *entry.second;
    return &node != step.read().node && std::ranges::find(node.inputs(), step.ref()) != node.inputs().end();
  });
}

}  // namespace

StepOfRun::StepOfRun(Graph& graph, const Variable& step)
    : step_(step), read_(identity(Scope(graph).named("global_step_after_run"), step)) {}

Output StepOfRun::behind(const std::vector<Fetch>& fetches) {
  if (read_.node == nullptr) return {};
  const auto same = [](const Fetch& fetch, const Operation& operation) {
    return fetch.operation == operation;
  };
  if (!std::ranges::equal(fetches, last_, same)) {
    last_.clear();
    for (const Fetch& fetch : fetches) last_.push_back(fetch.operation);
    last_counts_ = std::ranges::find(last_, Operation()) == last_.end() && counts(last_, step_);
  }
  return last_counts_ ? read_ : Output();
}

}  // namespace detail

}  // namespace kolo
