// Restoring from checkpoints. Contract: saver.h.
#include <algorithm>
#include <filesystem>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session_variables.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/core/training/rank_state_internal.h>
#include <kolo/core/training/saver.h>
#include <kolo/core/training/sharded_checkpoint.h>
#include <kolo/core/training/variable_slices.h>

namespace kolo {
namespace {

namespace fs = std::filesystem;
using Kind = RankState::Kind;

constexpr char kMissing[] =
    "Restoring from checkpoint failed. This is most likely due to a Variable name or other graph key that is "
    "missing from the checkpoint.";
constexpr char kMismatch[] =
    "Restoring from checkpoint failed. This is most likely due to a mismatch between the current graph and "
    "the graph from the checkpoint.";

void tell_of_other_ranks(const CheckpointIndex& index, const std::vector<Variable>& variables,
                         const detail::RankStates& states, const std::string& path) {
  const int ranks = world_group().size();
  for (const Variable& variable : variables) {
    if (states.of(variable).kind != Kind::own) continue;
    const int saved = detail::ranks_in_checkpoint(index, variable.name());
    if (saved == 0 || saved == ranks) continue;
    return log_info(
        "{} was written by {} ranks: what each of them has for itself (\"{}\" …) starts afresh on {}", path,
        saved, variable.name(), ranks);
  }
}

// What is said of one part of a variable is said of the others, too.
void add_once(std::vector<std::string>& complaints, std::string complaint) {
  if (complaints.empty() || complaints.back() != complaint) complaints.push_back(std::move(complaint));
}

// Another model has all of its variables to complain of.
std::string first_of(const std::vector<std::string>& complaints) {
  constexpr std::size_t kMost = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(complaints.size(), kMost); ++i) text += " " + complaints[i];
  if (complaints.size() > kMost) text += fmt::format(" And {} more.", complaints.size() - kMost);
  return text;
}

// Parts of one variable follow each other.
std::multimap<std::string, Variable> by_saved_name(const std::vector<Variable>& variables,
                                                   const detail::SavedNames& names,
                                                   const detail::RankStates& states) {
  std::multimap<std::string, Variable> sorted;
  for (const Variable& variable : variables)
    sorted.emplace(names.of(variable, states.of(variable)), variable);
  return sorted;
}

void read_part(CheckpointReader& reader, const RankState& state, const Tensor& destination) {
  const Tensor all(destination.dtype(), state.whole.shape);
  reader.read(state.whole.name, all);
  destination.copy_from(detail::part_of(all, state.range));
}

// What the tasks of the session have read themselves is no longer in the lists.
void read_by_tasks(Session& session, const CheckpointIndex& index, const std::string& path,
                   std::vector<Variable>& held, std::vector<std::string>& names,
                   const detail::RankStates& states) {
  detail::RemoteSession* const remote = detail::remote_of(session);
  if (remote == nullptr || index.shards.empty()) return;
  std::vector<detail::ShardedVariable> variables;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (states.of(held[i]).kind != Kind::shared) continue;
    detail::ShardedVariable variable{
        .variable = {.name = held[i].name(), .saved_as = names[i], .shape = held[i].shape()},
        .dtype = held[i].dtype(),
        .in_whole = detail::in_file(held[i])};
    variable.in_whole.whole = names[i];
    variables.push_back(std::move(variable));
    places.push_back(i);
  }
  const std::vector<bool> read = detail::read_sharded_checkpoint(*remote, index, path, variables);
  for (std::size_t k = places.size(); k-- > 0;) {
    if (!read[k]) continue;
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(places[k]));
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(places[k]));
  }
}

}  // namespace

void Saver::check_fits(const CheckpointIndex& index, const detail::RankStates& states,
                       const std::string& path) const {
  std::vector<std::string> missing, mismatched;
  for (const Variable& variable : variables_) {
    const RankState& state = states.of(variable);
    const auto name = names_.find(index, variable, state);
    if (!name && (state.optional || state.kind == Kind::scratch)) continue;
    if (!name) {
      add_once(missing, fmt::format("Key {} not found in checkpoint.", names_.of(variable, state)));
      continue;
    }
    const CheckpointIndex::TensorEntry& found = index.tensors.at(*name);
    const Shape shape = detail::saved_shape(variable, state);
    if (found.shape != shape && !(options_.reshape && found.shape.elements() == shape.elements()))
      add_once(
          mismatched,
          fmt::format("Assign requires shapes of both tensors to match. lhs shape= {} rhs shape= {} (\"{}\")",
                      shape, found.shape, *name));
    else if (found.dtype != variable.dtype())
      add_once(mismatched, fmt::format("\"{}\" is {} in the graph but {} in the checkpoint.", *name,
                                       variable.dtype(), found.dtype));
  }
  const std::string place = fmt::format(" (checkpoint {})", path);
  if (!missing.empty())
    throw NotFoundError("{}{}{}{}", kMissing, first_of(missing), first_of(mismatched), place);
  if (!mismatched.empty()) throw InvalidArgumentError("{}{}{}", kMismatch, first_of(mismatched), place);
}

CheckpointIndex Saver::restore(Session& session, const std::string& path) {
  if (variables_.empty()) return {};
  if (path.empty()) throw InvalidArgumentError("Can't load save_path when it is None.");
  std::error_code error;
  if (!fs::exists(checkpoint_index_path(path), error) && !error)
    throw InvalidArgumentError("The passed save_path is not a valid checkpoint: {}", path);
  log_info("Restoring parameters from {}", path);
  CheckpointReader reader(path);
  const detail::RankStates states(session.graph());
  check_fits(reader.index(), states, path);
  reader.verify();
  tell_of_other_ranks(reader.index(), variables_, states, path);
  detail::WholeReader wholes([&](const auto& name, const Tensor& into) { reader.read(name, into); });
  std::vector<Variable> held;
  std::vector<std::string> names;  // in the checkpoint
  for (const auto& [saved, variable] : by_saved_name(variables_, names_, states)) {
    const auto name = names_.find(reader.index(), variable, states.of(variable));
    if (!name) {
      session.run(variable.initializer());
      continue;
    }
    held.push_back(variable);
    names.push_back(*name);
  }
  read_by_tasks(session, reader.index(), path, held, names, states);
  detail::write_values(session, held, [&](std::size_t i, const Tensor& into) {
    const RankState& state = states.of(held[i]);
    if (state.kind == Kind::part) read_part(reader, state, into);
    else if (const auto slice = variable_slice(held[i])) wholes.read(names[i], *slice, into);
    else reader.read(names[i], into);
  });
  session.set_random_positions(reader.index().random_positions);
  return reader.index();
}

}  // namespace kolo
