#include <kolo/core/training/saver.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session_variables.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/global_step.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/core/training/rank_state_internal.h>
#include <kolo/core/training/sharded_checkpoint.h>
#include <kolo/core/training/variable_slices.h>

namespace kolo {
namespace {

namespace fs = std::filesystem;
using Kind = RankState::Kind;

bool has_a_file(const std::string& prefix) {
  std::error_code ignored;
  return fs::exists(checkpoint_index_path(prefix), ignored) || !checkpoint_tensor_files(prefix).empty();
}

// A part as the whole that it is.
Tensor whole_value(const Variable& variable, const RankState& state, const Tensor& value) {
  if (state.kind != Kind::part) return value;
  const auto& [name, shape] = state.whole;
  if (value.elements() != shape.elements())
    throw FailedPreconditionError(
        "shard \"{}\" has {} of the {} elements of \"{}\", and there is no other rank", variable.name(),
        value.elements(), shape.elements(), name);
  return value.reshaped(shape);
}

bool is_same(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

// What all ranks have put together of the variable, by name; this rank is the one that has it.
std::map<std::string, Tensor> gathered_value(const Variable& variable, const RankState& state,
                                             const Tensor& own, const GatheredState* gathered) {
  const int ranks = world_group().size();
  if (gathered == nullptr)
    throw FailedPreconditionError(
        "\"{}\" is spread over {} ranks, which must put it together before rank 0 saves: make a "
        "GatheredState "
        "of the session on all ranks and give it to the saver, or, in a hook, announce the save "
        "(RunContext::announce_save)",
        variable.name(), ranks);
  if (gathered->tensors().empty())
    throw FailedPreconditionError("\"{}\" is spread over {} ranks: rank 0 alone can save it, not rank {}",
                                  variable.name(), ranks, world_group().rank());
  const bool is_part = state.kind == Kind::part;
  std::vector<std::string> names;
  if (is_part) names.push_back(state.whole.name);
  for (int rank = 0; !is_part && rank < ranks; ++rank)
    names.push_back(detail::name_of_rank(variable.name(), rank));
  std::map<std::string, Tensor> values;
  for (const std::string& name : names) values[name] = gathered->tensors().at(name);
  const Tensor& first = values.at(names.front());
  if (!is_same(own, is_part ? detail::part_of(first, state.range) : first))
    throw FailedPreconditionError("\"{}\" has changed since the ranks put it together", variable.name());
  return values;
}

Tensor scalar_like(const Tensor& step, std::int64_t value) {
  if (step.dtype() == DType::i32) return Tensor::scalar(static_cast<std::int32_t>(value));
  return Tensor::scalar(value);
}

// Variables as files hold them; parts of one whole are numbered along it.
std::vector<detail::ShardedVariable> sharded(const std::vector<Variable>& variables,
                                             const detail::SavedNames& names,
                                             const detail::RankStates& states) {
  std::map<std::string, std::vector<std::int64_t>> firsts;  // of the slices of each whole
  for (const Variable& variable : variables)
    if (const auto slice = variable_slice(variable); slice && variable.shape().elements() > 0)
      firsts[slice->whole].push_back(slice->first);
  for (auto& [whole, all] : firsts) std::sort(all.begin(), all.end());
  std::vector<detail::ShardedVariable> saved;
  for (const Variable& variable : variables) {
    const RankState& state = states.of(variable);
    const auto slice = variable_slice(variable);
    const std::string name = names.of(variable, state);
    if (variable.dtype() == DType::string)
      throw UnimplementedError(
          "variable \"{}\" is of strings, which the tasks of a cluster do not write themselves: save without "
          "`sharded`",
          variable.name());
    if (!slice || state.kind != Kind::shared) {
      const Shape shape = detail::saved_shape(variable, state);
      saved.push_back({.variable = {.name = variable.name(), .saved_as = name, .shape = shape},
                       .dtype = variable.dtype(),
                       .in_whole = {.whole = name, .shape = shape}});
      continue;
    }
    if (variable.shape().elements() == 0 && slice->shape.elements() > 0) continue;
    const auto& all = firsts[slice->whole];
    const auto part = std::lower_bound(all.begin(), all.end(), slice->first) - all.begin();
    saved.push_back({.variable = {.name = variable.name(),
                                  .saved_as = fmt::format("{}/part_{}", name, part),
                                  .shape = variable.shape()},
                     .dtype = variable.dtype(),
                     .in_whole = *slice});
  }
  return saved;
}

std::vector<Variable> variables_of(const NamedVariables& named) {
  std::vector<Variable> variables;
  for (const auto& [name, variable] : named) variables.push_back(variable);
  return variables;
}

detail::SavedNames names_of(const NamedVariables& named) {
  detail::SavedNames names;
  for (const auto& [name, variable] : named) names.set(variable, name);
  return names;
}

}  // namespace

Saver::Saver(const Graph& graph, SaverOptions options) : Saver(global_variables(graph), options) {}

Saver::Saver(std::vector<Variable> variables, SaverOptions options)
    : Saver(std::move(variables), detail::SavedNames(), options) {}

Saver::Saver(const NamedVariables& variables, SaverOptions options)
    : Saver(variables_of(variables), names_of(variables), options) {}

Saver::Saver(std::vector<Variable> variables, detail::SavedNames names, SaverOptions options)
    : variables_(std::move(variables)),
      names_(std::move(names)),
      options_(options),
      checkpoints_(
          {.max_to_keep = options.max_to_keep, .keep_every_n_hours = options.keep_checkpoint_every_n_hours}) {
  if (variables_.empty()) {
    if (options_.allow_empty) return;
    throw InvalidArgumentError("No variables to save");
  }
  if (options_.max_to_keep < 0)
    throw InvalidArgumentError("max_to_keep is {}; it must be at least 0", options_.max_to_keep);
  const detail::RankStates states(variables_.front().ref().node->graph());
  std::set<std::string> used, wholes;
  for (const Variable& variable : variables_) {
    const RankState& state = states.of(variable);
    const std::string name = names_.of(variable, state);
    const bool is_known = variable_slice(variable) && wholes.count(name) > 0;
    if (variable_slice(variable)) wholes.insert(name);
    if (state.kind != Kind::scratch && !is_known && !used.insert(name).second)
      throw InvalidArgumentError("At least two variables have the same name: {}", name);
    if (variable.dtype() == DType::string && (state.kind != Kind::shared || variable_slice(variable)))
      throw InvalidArgumentError(
          "variable \"{}\" is of strings; it can be saved as a whole alone, not in parts "
          "or by rank",
          variable.name());
  }
  detail::check_wholes(variables_);
}

std::string Saver::save(Session& session, const std::string& prefix, std::optional<std::int64_t> global_step,
                        const std::map<std::string, std::string>& state, const GatheredState* gathered,
                        const CheckpointStateOptions& options) {
  std::string path = prefix;
  if (global_step)
    path += options_.pad_step_number ? fmt::format("-{:08}", *global_step) : fmt::format("-{}", *global_step);
  if (!fs::is_directory(folder_of(path)))
    throw InvalidArgumentError("Parent directory of {} doesn't exist, can't save.", path);
  if (fs::path(options.latest_filename).filename() != options.latest_filename)
    throw InvalidArgumentError("'latest_filename' must not contain path components: '{}'",
                               options.latest_filename);
  if (fs::path(path).filename() == options.latest_filename)
    throw InvalidArgumentError("'latest_filename' collides with 'save_path': '{}' and '{}'",
                               options.latest_filename, prefix);
  if (variables_.empty()) return path;

  CheckpointExtra extra{
      .global_step = global_step, .random_positions = session.random_positions(), .state = state};
  if (detail::RemoteSession* const remote = detail::remote_of(session); remote && options_.sharded) {
    save_sharded(*remote, session, path, std::move(extra));
    note_saved(path, options);
    return path;
  }
  std::map<std::string, Tensor> tensors = tensors_of(session, gathered);
  if (const Variable step = find_global_step(session.graph());
      step && std::find(variables_.begin(), variables_.end(), step) != variables_.end()) {
    Tensor& saved = tensors.at(names_.of(step, rank_state(step)));
    if (!global_step) extra.global_step = step_of(saved);
    // Others train on a server meanwhile: what the checkpoint is called is what it holds.
    else if (!session.target().empty()) saved = scalar_like(saved, *global_step);
  }
  for (const auto& [name, tensor] : options.tensors)
    if (!tensors.emplace(name, tensor).second)
      throw InvalidArgumentError("a tensor beside the variables has the name of one of them: {}", name);
  extra.before_publishing = options.before_publishing;
  write_checkpoint(path, tensors, extra);
  note_saved(path, options);
  return path;
}

// Nothing of a rank is in it: sessions on servers have none.
void Saver::save_sharded(detail::RemoteSession& remote, Session& session, const std::string& path,
                         CheckpointExtra extra) const {
  const detail::RankStates states(session.graph());
  std::vector<detail::ShardedVariable> variables = sharded(saved_variables(states), names_, states);
  if (const Variable step = find_global_step(session.graph())) {
    for (detail::ShardedVariable& saved : variables) {
      if (saved.variable.name != step.name()) continue;
      // The step before all else: what others update meanwhile is newer than it says, never older.
      const Tensor value = detail::value_of(session, step);
      if (!value) throw FailedPreconditionError("Attempting to use uninitialized value {}", step.name());
      if (!extra.global_step) extra.global_step = step_of(value);
      saved.variable.value = extra.global_step;
    }
  }
  detail::write_sharded_checkpoint(remote, path, variables, extra);
}

std::vector<Variable> Saver::saved_variables(const detail::RankStates& states) const {
  std::vector<Variable> saved = variables_;
  std::erase_if(saved, [&](const Variable& v) { return states.of(v).kind == Kind::scratch; });
  return saved;
}

void Saver::adopt(const std::string& path) { note_saved(path, {}); }

void Saver::note_saved(const std::string& path, const CheckpointStateOptions& options) {
  const std::vector<std::string> outdated = checkpoints_.add(path);
  if (options.write_state) checkpoints_.write_state(path, options.latest_filename);
  for (const std::string& old : outdated) {
    // The newest checkpoint is safe, and the state file no longer lists these: what stays behind is no failed
    // save.
    try {
      remove_checkpoint(old);
    } catch (const Error& error) {
      log_warning("the outdated checkpoint {} stays: {}", old, error.what());
    }
  }
}

std::map<std::string, Tensor> Saver::tensors_of(Session& session, const GatheredState* gathered) const {
  const bool is_spread = is_spread_over_ranks(session);
  const detail::RankStates states(session.graph());
  std::vector<Variable> saved = saved_variables(states);
  // The step first: what others have updated meanwhile is newer than it says, never older.
  std::stable_partition(saved.begin(), saved.end(),
                        [](const Variable& v) { return v.name() == "global_step"; });
  std::map<std::string, Tensor> tensors;
  detail::read_values(session, saved, [&](std::size_t i, const Tensor& value) {
    const Variable& variable = saved[i];
    const RankState& state = states.of(variable);
    if (!value) throw FailedPreconditionError("Attempting to use uninitialized value {}", variable.name());
    if (const auto slice = variable_slice(variable); slice && state.kind == Kind::shared) {
      Tensor& whole = tensors[slice->whole];
      if (!whole) whole = Tensor(variable.dtype(), slice->shape);
      return detail::copy_in(value, *slice, whole);
    }
    std::map<std::string, Tensor> values;
    if (is_spread && state.kind != Kind::shared) values = gathered_value(variable, state, value, gathered);
    else values[names_.of(variable, state)] = whole_value(variable, state, value);
    tensors.merge(values);
    if (!values.empty())  // what could not be merged
      throw InvalidArgumentError("At least two variables have the same name: {}", values.begin()->first);
  });
  return tensors;
}

void Saver::recover_last_checkpoints(const std::vector<std::string>& paths) {
  std::vector<std::string> there;
  for (const std::string& path : paths)
    if (has_a_file(path)) there.push_back(path);
  checkpoints_.recover(there);
}

}  // namespace kolo
