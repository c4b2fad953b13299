#include <kolo/optimizer/broadcast_hook.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/training/optional_state.h>

namespace kolo {
namespace {

struct Kind {
  std::string dtype;
  std::string shape;
};
// What one rank has: by name, so that the order in which it made its variables does not matter.
using Inventory = std::map<std::string, Kind>;

struct Report {
  std::string root;
  Inventory variables;
};

// Names of nodes hold no spaces.
std::string write_report(std::span<const Variable> variables, int root) {
  std::string text = fmt::format("{}\n", root);
  for (const Variable& variable : variables)
    text += fmt::format("{} {} {}\n", variable.name(), numpy_name(variable.dtype()), variable.shape());
  return text;
}

Report read_report(const std::string& text) {
  std::istringstream in(text);
  Report report;
  in >> report.root;
  for (std::string name, dtype, shape; in >> name >> dtype >> shape;) report.variables[name] = {dtype, shape};
  return report;
}

void check_all_ranks_have_all(const std::vector<Report>& reports) {
  std::map<std::string, std::vector<int>> holders;
  for (std::size_t rank = 0; rank < reports.size(); ++rank)
    for (const auto& [name, kind] : reports[rank].variables) holders[name].push_back(static_cast<int>(rank));
  std::vector<std::string> differences;
  for (const auto& [name, ranks] : holders) {
    if (ranks.size() == reports.size()) continue;
    std::vector<int> lacking;
    for (int rank = 0; rank < static_cast<int>(reports.size()); ++rank)
      if (!std::binary_search(ranks.begin(), ranks.end(), rank)) lacking.push_back(rank);
    differences.push_back(fmt::format("\"{}\" is on ranks [{}], missing on [{}]", name, fmt::join(ranks, ","),
                                      fmt::join(lacking, ",")));
  }
  if (!differences.empty())
    throw FailedPreconditionError(
        "Ranks disagree on the variables to broadcast: {}; every rank must build the same graph",
        fmt::join(differences, "; "));
}

// Every rank sees the same reports and so throws the same error.
void check_alike(const std::vector<Report>& reports) {
  check_all_ranks_have_all(reports);
  const Report& first = reports[0];
  for (std::size_t rank = 1; rank < reports.size(); ++rank) {
    const Report& other = reports[rank];
    if (other.root != first.root)
      throw InvalidArgumentError("Mismatched root ranks for variables: rank 0 says {}, rank {} says {}",
                                 first.root, rank, other.root);
    for (const auto& [name, kind] : first.variables) {
      const Kind& found = other.variables.at(name);
      if (found.dtype != kind.dtype)
        throw InvalidArgumentError("Mismatched data types for {}: rank 0 has {}, rank {} has {}", name,
                                   kind.dtype, rank, found.dtype);
      if (found.shape != kind.shape)
        throw InvalidArgumentError("Mismatched shapes for {}: rank 0 has {}, rank {} has {}", name,
                                   kind.shape, rank, found.shape);
    }
  }
}

std::string missing_value(Session& session, const std::vector<Variable>& variables) {
  for (const Variable& variable : variables)
    if (!session.variable(*variable.ref().node).initialized)
      return fmt::format("Attempting to use uninitialized value {}", variable.name());
  return "";
}

}  // namespace

void broadcast_variables(Session& session, std::span<const Variable> variables, int root) {
  Group& group = world_group();
  const std::string outside =
      root < 0 || root >= group.size()
          ? fmt::format("root rank {} is outside the process set of {} ranks", root, group.size())
          : "";
  throw_if_any_failed(group, Code::invalid_argument, outside);

  std::vector<Report> reports;
  for (const std::string& text : group.allgather(write_report(variables, root)))
    reports.push_back(read_report(text));
  check_alike(reports);

  std::vector<Variable> by_name(variables.begin(), variables.end());
  std::sort(by_name.begin(), by_name.end(),
            [](const Variable& a, const Variable& b) { return a.name() < b.name(); });
  throw_if_any_failed(group, Code::failed_precondition,
                      group.rank() == root ? missing_value(session, by_name) : "");

  std::vector<Tensor> values;
  for (const Variable& variable : by_name) values.push_back(session.variable(*variable.ref().node).value);
  group.broadcast(values, root);
  for (const Variable& variable : by_name) session.variable(*variable.ref().node).initialized = true;
}

namespace {

// All but those that are each rank's own; these at least have a value afterwards.
std::vector<Variable> shared_variables(Session& session) {
  std::vector<Variable> shared;
  for (const Variable& variable : global_variables(session.graph())) {
    if (!is_own_of_rank(variable)) shared.push_back(variable);
    else if (!session.variable(*variable.ref().node).initialized) session.run(variable.initializer());
  }
  return shared;
}

}  // namespace

void broadcast_optimizer_state(Session& session, int root) {
  std::vector<Variable> state = shared_variables(session);
  const std::vector<Variable> trainable = trainable_variables(session.graph());
  std::erase_if(state, [&](const Variable& variable) {
    return std::find(trainable.begin(), trainable.end(), variable) != trainable.end();
  });
  broadcast_variables(session, state, root);
}

void BroadcastGlobalVariablesHook::after_create_session(Session& session) {
  broadcast_variables(session, shared_variables(session), root_);
}

}  // namespace kolo
