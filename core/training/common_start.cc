#include <kolo/core/training/common_start.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include <kolo/core/base/json_text.h>
#include <kolo/core/base/log.h>
#include <kolo/core/runtime/compare_ranks.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/core/runtime/session_variables.h>
#include <kolo/core/training/broadcast_values.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/global_step.h>
#include <kolo/core/training/rank_state_internal.h>

namespace kolo::detail {
namespace {

using nlohmann::json;

constexpr int kChief = 0;
constexpr char kVariable[] = "variable ", kState[] = "saved state ";

NamedTexts described(const Graph& graph, const std::vector<SavedState>& states) {
  const RankStates rank_states(graph);
  std::map<std::string, std::string> variables;  // by name: the order in which they were made does not matter
  for (const Variable& variable : global_variables(graph)) {
    const RankState& state = rank_states.of(variable);
    variables[variable.name()] =
        description_of(variable, state) + (state.kind == RankState::Kind::shared ? "" : ", each rank's own");
  }
  NamedTexts texts;
  for (const auto& [name, text] : variables) texts.emplace_back(kVariable + name, text);
  for (const SavedState& state : states) texts.emplace_back(kState + state.name, "");
  return texts;
}

// The names of `kind` in `here` that `there` lacks: "a", "b".
std::string names_missing(const std::string& kind, const NamedTexts& here, const NamedTexts& there) {
  std::string names;
  for (const auto& [name, text] : here)
    if (name.starts_with(kind) && find_text(there, name) == nullptr)
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name.substr(kind.size()));
  return names;
}

void check_names(const char* what, const std::string& kind, const NamedTexts& first, const NamedTexts& other,
                 int rank) {
  for (const bool swapped : {false, true}) {
    const std::string names = swapped ? names_missing(kind, other, first) : names_missing(kind, first, other);
    if (names.empty()) continue;
    throw FailedPreconditionError("Ranks disagree on the {}: {} exist{} on rank {} but not on rank {}", what,
                                  names, names.find(',') == std::string::npos ? "s" : "",
                                  swapped ? rank : kChief, swapped ? kChief : rank);
  }
}

void check_equal(const NamedTexts& first, const NamedTexts& other, int rank) {
  check_names("variables", kVariable, first, other, rank);
  for (const auto& [name, text] : first)
    if (const std::string* const found = find_text(other, name); found != nullptr && *found != text)
      throw FailedPreconditionError(
          "Ranks disagree on the variables: \"{}\" is {} on rank {} but {} on rank {}",
          name.substr(std::string(kVariable).size()), text, kChief, *found, rank);
  check_names("saved state", kState, first, other, rank);
}

// `3 variables ("a", "b", …)`
std::string counted(const char* what, const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 3;
  const std::size_t shown = std::min(names.size(), kMostNamed);
  return fmt::format("{} {}{} (\"{}\"{})", names.size(), what, names.size() == 1 ? "" : "s",
                     fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), "\", \""),
                     names.size() > shown ? ", …" : "");
}

// Where the training was changed since the checkpoint, as by another optimizer: what of the old one goes and
// what of the new one begins anew. What each rank has for itself, Saver::restore tells of.
void tell_of_changes(const CheckpointIndex& index, const Graph& graph, const SavedNames& names,
                     const std::string& path) {
  using Kind = RankState::Kind;
  const RankStates states(graph);
  std::set<std::string> used;
  std::vector<std::string> anew, dropped;
  for (const Variable& variable : global_variables(graph)) {
    const RankState& state = states.of(variable);
    const std::string name = names.of(variable, state);
    const bool is_first = used.insert(name).second;  // of the parts of one whole
    for (int rank = 0; state.kind == Kind::own && rank < ranks_in_checkpoint(index, name); ++rank)
      used.insert(name_of_rank(name, rank));
    const bool told_of = state.optional && (state.kind == Kind::shared || state.kind == Kind::part);
    if (told_of && is_first && index.tensors.count(name) == 0) anew.push_back(name);
  }
  for (const auto& [name, entry] : index.tensors)
    if (used.count(name) == 0) dropped.push_back(name);
  std::string text;
  if (!dropped.empty()) text = counted("tensor", dropped) + " of it will not be used, nor saved again";
  if (!anew.empty())
    text += fmt::format("{}{} not in it: {}", text.empty() ? "" : "; ", counted("variable", anew),
                        anew.size() == 1 ? "it begins anew" : "they begin anew");
  if (!text.empty()) log_warning("{} is of another training step: {}", path, text);
}

std::optional<std::string> checkpoint_to_restore(const MonitoredTrainingSessionOptions& options,
                                                 const std::shared_ptr<Saver>& saver) {
  if (!options.checkpoint_filename_with_path.empty()) return options.checkpoint_filename_with_path;
  if (options.checkpoint_dir.empty()) return {};
  if (!saver) return newest_intact_checkpoint(options.checkpoint_dir);
  const std::vector<std::string> names = list_checkpoints(options.checkpoint_dir);
  auto newest = newest_intact_checkpoint(options.checkpoint_dir, names);
  saver->recover_last_checkpoints(paths_oldest_first(options.checkpoint_dir, names));
  return newest;
}

// One warning where initialising the graph's variables makes those of a training that others go on with begin
// anew.
void warn_of_values(Session& session) {
  const std::vector<Variable> variables = global_variables(session.graph());
  const std::vector<bool> initialized = are_initialized(session, variables);
  const auto there = std::count(initialized.begin(), initialized.end(), true);
  if (there == 0) return;
  const Variable step = find_global_step(session.graph());
  log_warning("initialising {} variables that have values on the parameter servers{}", there,
              step && is_initialized(session, step)
                  ? fmt::format(" (global_step {})", read_global_step(session, step))
                  : "");
}

void initialize(Session& session, const MonitoredTrainingSessionOptions& options) {
  const Scaffold& scaffold = options.scaffold;
  if (!session.target().empty()) warn_of_values(session);
  if (scaffold.init_op) session.run(scaffold.init_op, scaffold.init_feeds);
  else run_initializers(session, global_variables(session.graph()));
  if (scaffold.init_fn) scaffold.init_fn(session);
  if (!options.initial_weights.path.empty()) load_initial_weights(session, options.initial_weights);
}

}  // namespace

bool compare_number_of_schedules(Group& group, const std::map<std::vector<int>, int>& schedules) {
  using Counts = std::map<std::vector<int>, int>;
  if (group.size() == 1) return false;
  std::vector<Counts> all;
  Counts known;
  for (const std::string& text : group.allgather(json_text(json(schedules)))) {
    all.push_back(json::parse(text).get<Counts>());
    known.merge(Counts(all.back()));
  }
  std::vector<int> everybody(static_cast<std::size_t>(group.size()));
  std::iota(everybody.begin(), everybody.end(), 0);
  for (const auto& [ranks, ignored] : known) {
    const std::vector<int>& members = ranks.empty() ? everybody : ranks;
    const std::string where = ranks.empty() ? "" : fmt::format(" over the ranks [{}]", fmt::join(ranks, ","));
    const int first = all[members[0]][ranks];
    for (const int rank : members)
      if (const int other = all[rank][ranks]; other != first)
        throw FailedPreconditionError(
            "Ranks disagree on the training step: the graph has {} distributed optimizers{} on rank {} but "
            "{} "
            "on rank {}",
            first, where, members[0], other, rank);
  }
  return std::any_of(known.begin(), known.end(), [](const auto& entry) { return !entry.first.empty(); });
}

void compare_variables(Group& group, const Graph& graph, const std::vector<SavedState>& states) {
  const auto difference = compare_ranks(group, described(graph, states));
  if (!difference) return;
  for (int rank = 1; rank < group.size(); ++rank)
    check_equal(difference->all[kChief], difference->all[static_cast<std::size_t>(rank)], rank);
}

void compare_precision(Group& group, Precision precision) {
  constexpr char kOption[] = "graph_options.precision";
  const auto difference = compare_ranks(group, {{kOption, std::string(precision_name(precision))}});
  if (!difference) return;
  throw FailedPreconditionError("Ranks disagree on the training step: {} is {} on rank {} but {} on rank {}",
                                kOption, difference->texts[0].value_or(""), 0,
                                difference->texts[static_cast<std::size_t>(difference->other)].value_or(""),
                                difference->other);
}

std::optional<std::string> restore_or_initialize(Session& session,
                                                 const MonitoredTrainingSessionOptions& options,
                                                 const std::shared_ptr<Saver>& saver) {
  std::optional<std::string> newest = checkpoint_to_restore(options, saver);
  if (!newest) {
    initialize(session, options);
    return {};
  }
  if (!options.initial_weights.path.empty())
    log_info("{} is not read: the training goes on from {}", options.initial_weights.path, *newest);

  const auto restoring = saver ? saver : std::make_shared<Saver>(session.graph());
  const CheckpointIndex index = restoring->restore(session, *newest);
  tell_of_changes(index, session.graph(), restoring->names(), *newest);
  for (const SavedState& state : options.saved_state) {
    const auto saved = index.state.find(state.name);
    if (saved != index.state.end()) state.restore(saved->second);
    else log_warning("{} holds no \"{}\": it starts afresh", *newest, state.name);
  }
  return newest;
}

void initialize_local_variables(Session& session, const Scaffold& scaffold) {
  if (scaffold.local_init_op) session.run(scaffold.local_init_op);
  else run_initializers(session, local_variables(session.graph()));
}

void run_initializers(Session& session, const std::vector<Variable>& variables) {
  std::vector<Fetch> initializers;
  for (const Variable& variable : variables) initializers.emplace_back(variable.initializer());
  if (!initializers.empty()) session.run(initializers);
}

void broadcast_state(Group& group, Session& session, const std::vector<SavedState>& states) {
  if (group.size() == 1) return;
  const bool is_chief = group.rank() == kChief;
  json beside = {{"random_positions", session.random_positions()}, {"states", json::object()}};
  share_failure(group, [&] {
    if (!is_chief) return;
    for (const SavedState& state : states) beside["states"][state.name] = state.save();
  });
  const json chiefs = json::parse(group.broadcast(json_text(beside), kChief));

  std::vector<Tensor> values;
  std::vector<Variable> variables, own;
  const RankStates states_of(session.graph());
  for (const Variable& variable : global_variables(session.graph()))
    (states_of.of(variable).kind == RankState::Kind::shared ? variables : own).push_back(variable);
  // A device may fail where a variable of it is read.
  share_failure(group, [&] {
    if (!is_chief) run_initializers(session, own);
    for (const Variable& variable : variables)
      values.push_back(detail::read_variable(detail::storage_of(session, variable)));
  });
  broadcast_values(group, values, kChief);
  share_failure(group, [&] {
    if (is_chief) return;
    for (std::size_t i = 0; i < variables.size(); ++i)
      detail::write_variable(detail::storage_of(session, variables[i]), values[i]);
    session.set_random_positions(chiefs["random_positions"].get<std::map<std::string, std::uint64_t>>());
    for (const SavedState& state : states) state.restore(chiefs["states"][state.name].get<std::string>());
  });
}

}  // namespace kolo::detail
