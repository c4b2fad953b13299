#include <kolo/optimizer/hooks.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <kolo/collectives/engine/set_group.h>
#include <kolo/core/base/error.h>
#include <kolo/core/runtime/compare_ranks.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/core/training/broadcast_values.h>
#include <kolo/core/training/rank_state_internal.h>

namespace kolo {
namespace {

struct Kind {
  std::string dtype;
  std::string shape;
};
// What one rank has: by name, so that the order in which it made its variables does not matter.
using Inventory = std::map<std::string, Kind>;

struct Report {
  int rank = 0;
  std::string root;
  Inventory variables;
};

constexpr char kRoot[] = "";  // no variable has this name

detail::NamedTexts described(std::span<const Variable> variables, int root) {
  detail::NamedTexts texts = {{kRoot, std::to_string(root)}};
  for (const Variable& variable : variables)
    texts.emplace_back(variable.name(), fmt::format("{} {}", numpy_name(variable.dtype()), variable.shape()));
  return texts;
}

Report read_report(int rank, const detail::NamedTexts& texts) {
  Report report{.rank = rank, .root = *detail::find_text(texts, kRoot), .variables = {}};
  for (const auto& [name, text] : texts)
    if (const auto space = text.find(' '); name != kRoot)
      report.variables[name] = {.dtype = text.substr(0, space), .shape = text.substr(space + 1)};
  return report;
}

void check_all_ranks_have_all(const std::vector<Report>& reports) {
  std::map<std::string, std::vector<int>> holders;
  for (const Report& report : reports)
    for (const auto& [name, kind] : report.variables) holders[name].push_back(report.rank);
  std::vector<std::string> differences;
  for (const auto& [name, ranks] : holders) {
    if (ranks.size() == reports.size()) continue;
    std::vector<int> lacking;
    for (const Report& report : reports)
      if (std::find(ranks.begin(), ranks.end(), report.rank) == ranks.end()) lacking.push_back(report.rank);
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
  for (const Report& other : reports) {
    if (other.root != first.root)
      throw InvalidArgumentError("Mismatched root ranks for variables: rank {} says {}, rank {} says {}",
                                 first.rank, first.root, other.rank, other.root);
    for (const auto& [name, kind] : first.variables) {
      const Kind& found = other.variables.at(name);
      if (found.dtype != kind.dtype)
        throw InvalidArgumentError("Mismatched data types for {}: rank {} has {}, rank {} has {}", name,
                                   first.rank, kind.dtype, other.rank, found.dtype);
      if (found.shape != kind.shape)
        throw InvalidArgumentError("Mismatched shapes for {}: rank {} has {}, rank {} has {}", name,
                                   first.rank, kind.shape, other.rank, found.shape);
    }
  }
}

std::string missing_value(Session& session, const std::vector<Variable>& variables) {
  for (const Variable& variable : variables)
    if (!detail::storage_of(session, variable).initialized)
      return fmt::format("Attempting to use uninitialized value {}", variable.name());
  return "";
}

// ranks: the job's numbers of the group's.
void broadcast_in(Group& group, const std::vector<int>& ranks, Session& session,
                  std::span<const Variable> variables, int root) {
  const auto place = std::find(ranks.begin(), ranks.end(), root);
  throw_if_any_failed(
      group, Code::invalid_argument,
      place == ranks.end()
          ? fmt::format("root rank {} is outside the process set of {} ranks", root, group.size())
          : "");

  std::vector<Variable> by_name(variables.begin(), variables.end());
  std::sort(by_name.begin(), by_name.end(),
            [](const Variable& a, const Variable& b) { return a.name() < b.name(); });
  if (const auto difference = detail::compare_ranks(group, described(by_name, root))) {
    std::vector<Report> reports;
    for (std::size_t i = 0; i < ranks.size(); ++i)
      reports.push_back(read_report(ranks[i], difference->all[i]));
    check_alike(reports);
  }
  const int root_in_group = static_cast<int>(place - ranks.begin());

  // Whose device fails, all fail with: else the others wait for it.
  std::vector<Tensor> values;
  detail::share_failure(group, [&] {
    const std::string missing = group.rank() == root_in_group ? missing_value(session, by_name) : "";
    if (!missing.empty()) throw FailedPreconditionError("{}", missing);
    for (const Variable& variable : by_name)
      values.push_back(detail::read_variable(detail::storage_of(session, variable)));
  });
  detail::broadcast_values(group, values, root_in_group);
  detail::share_failure(group, [&] {
    for (std::size_t i = 0; i < by_name.size(); ++i)
      detail::write_variable(detail::storage_of(session, by_name[i]), values[i]);
  });
}

// All but those that are each rank's own; these at least have a value afterwards.
std::vector<Variable> shared_variables(Session& session) {
  const detail::RankStates states(session.graph());
  std::vector<Variable> shared;
  for (const Variable& variable : global_variables(session.graph())) {
    if (states.of(variable).kind == RankState::Kind::shared) shared.push_back(variable);
    else if (!detail::storage_of(session, variable).initialized) session.run(variable.initializer());
  }
  return shared;
}

}  // namespace

void broadcast_variables(Session& session, std::span<const Variable> variables, int root,
                         const ProcessSet& set) {
  if (set == ProcessSet()) {
    std::vector<int> ranks(static_cast<std::size_t>(world_group().size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return broadcast_in(world_group(), ranks, session, variables, root);
  }
  if (!set.contains_this_rank()) return;
  detail::SetGroup group(set);
  broadcast_in(group, set.ranks(), session, variables, root);
}

void broadcast_optimizer_state(Session& session, int root, const ProcessSet& set) {
  std::vector<Variable> state = shared_variables(session);
  const std::vector<Variable> trainable = trainable_variables(session.graph());
  std::erase_if(state, [&](const Variable& variable) {
    return std::find(trainable.begin(), trainable.end(), variable) != trainable.end();
  });
  broadcast_variables(session, state, root, set);
}

void BroadcastGlobalVariablesHook::after_create_session(Session& session) {
  if (!session.target().empty()) return;  // all workers of a cluster share the variables
  broadcast_variables(session, shared_variables(session), root_, set_);
}

}  // namespace kolo
