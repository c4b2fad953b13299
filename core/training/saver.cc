#include <kolo/core/training/saver.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/training/checkpoint_state.h>
#include <kolo/core/training/global_step.h>
#include <kolo/core/training/optional_state.h>

namespace kolo {
namespace {

namespace fs = std::filesystem;

constexpr char kMissing[] =
    "Restoring from checkpoint failed. This is most likely due to a Variable name or other graph key that is "
    "missing "
    "from the checkpoint.";
constexpr char kMismatch[] =
    "Restoring from checkpoint failed. This is most likely due to a mismatch between the current graph and "
    "the graph from "
    "the checkpoint.";

std::string folder_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

bool has_a_file(const std::string& prefix) {
  std::error_code ignored;
  return fs::exists(checkpoint_index_path(prefix), ignored) ||
         fs::exists(checkpoint_tensors_path(prefix), ignored);
}

}  // namespace

Saver::Saver(const Graph& graph, SaverOptions options) : Saver(global_variables(graph), options) {}

Saver::Saver(std::vector<Variable> variables, SaverOptions options)
    : variables_(std::move(variables)), options_(options) {
  if (variables_.empty()) throw InvalidArgumentError("No variables to save");
  if (options_.max_to_keep < 0)
    throw InvalidArgumentError("max_to_keep is {}; it must be at least 0", options_.max_to_keep);
  std::set<std::string> names;
  for (const Variable& variable : variables_) {
    if (!names.insert(variable.name()).second)
      throw InvalidArgumentError("At least two variables have the same name: {}", variable.name());
    if (variable.dtype() == DType::string)
      throw InvalidArgumentError("variable \"{}\" has type string, which a checkpoint cannot hold",
                                 variable.name());
  }
}

std::string Saver::save(Session& session, const std::string& prefix, std::optional<std::int64_t> global_step,
                        const std::map<std::string, std::string>& state) {
  std::string path = prefix;
  if (global_step)
    path += options_.pad_step_number ? fmt::format("-{:08}", *global_step) : fmt::format("-{}", *global_step);
  if (!fs::is_directory(folder_of(path)))
    throw InvalidArgumentError("Parent directory of {} doesn't exist, can't save.", path);
  if (fs::path(path).filename() == "checkpoint")
    throw InvalidArgumentError("'latest_filename' collides with 'save_path': 'checkpoint' and '{}'", prefix);

  std::map<std::string, Tensor> tensors;
  for (const Variable& variable : variables_) {
    const VariableStorage& storage = session.variable(*variable.ref().node);
    if (!storage.initialized)
      throw FailedPreconditionError("Attempting to use uninitialized value {}", variable.name());
    tensors[variable.name()] = storage.value;
  }
  const Variable step = find_global_step(session.graph());
  if (!global_step && step && tensors.count(step.name()) > 0) global_step = read_global_step(session, step);
  write_checkpoint(
      path, tensors,
      {.global_step = global_step, .random_positions = session.random_positions(), .state = state});

  const std::vector<std::string> outdated = remember(path);
  write_state(path);
  for (const std::string& old : outdated) {
    // The new checkpoint is safe, and the state file no longer lists these: what stays behind is no failed
    // save.
    try {
      remove_checkpoint(old);
    } catch (const Error& error) {
      log_warning("the outdated checkpoint {} stays: {}", old, error.what());
    }
  }
  return path;
}

// Returns what is over max_to_keep now.
std::vector<std::string> Saver::remember(const std::string& path) {
  std::erase(last_checkpoints_, path);
  if (options_.max_to_keep == 0) last_checkpoints_.clear();
  last_checkpoints_.push_back(path);
  std::vector<std::string> outdated;
  while (options_.max_to_keep > 0 &&
         last_checkpoints_.size() > static_cast<std::size_t>(options_.max_to_keep)) {
    outdated.push_back(last_checkpoints_.front());
    last_checkpoints_.erase(last_checkpoints_.begin());
  }
  return outdated;
}

void Saver::write_state(const std::string& path) const {
  const std::string folder = folder_of(path);
  CheckpointState state{.model_checkpoint_path = fs::path(path).filename().string(),
                        .all_model_checkpoint_paths = {}};
  for (const std::string& listed : last_checkpoints_)
    state.all_model_checkpoint_paths.push_back(
        folder_of(listed) == folder ? fs::path(listed).filename().string() : fs::absolute(listed).string());
  write_checkpoint_state(state, folder);
}

void Saver::check_fits(const CheckpointIndex& index, const std::string& path) const {
  std::string missing, mismatched;
  for (const Variable& variable : variables_) {
    const auto found = index.tensors.find(variable.name());
    if (found == index.tensors.end() && is_optional(variable)) continue;
    if (found == index.tensors.end())
      missing += fmt::format(" Key {} not found in checkpoint.", variable.name());
    else if (found->second.shape != variable.shape())
      mismatched += fmt::format(
          " Assign requires shapes of both tensors to match. lhs shape= {} rhs shape= {} (\"{}\")",
          variable.shape(), found->second.shape, variable.name());
    else if (found->second.dtype != variable.dtype())
      mismatched += fmt::format(" \"{}\" is {} in the graph but {} in the checkpoint.", variable.name(),
                                variable.dtype(), found->second.dtype);
  }
  const std::string place = fmt::format(" (checkpoint {})", path);
  if (!missing.empty()) throw NotFoundError("{}{}{}{}", kMissing, missing, mismatched, place);
  if (!mismatched.empty()) throw InvalidArgumentError("{}{}{}", kMismatch, mismatched, place);
}

CheckpointIndex Saver::restore(Session& session, const std::string& path) {
  if (path.empty()) throw InvalidArgumentError("Can't load save_path when it is None.");
  std::error_code ignored;
  if (!fs::exists(checkpoint_index_path(path), ignored))
    throw InvalidArgumentError("The passed save_path is not a valid checkpoint: {}", path);
  log_info("Restoring parameters from {}", path);
  CheckpointReader reader(path);
  check_fits(reader.index(), path);
  reader.verify();
  for (const Variable& variable : variables_) {
    if (reader.index().tensors.count(variable.name()) == 0) {
      session.run(variable.initializer());
      continue;
    }
    VariableStorage& storage = session.variable(*variable.ref().node);
    reader.read(variable.name(), storage.value);
    storage.initialized = true;
  }
  session.set_random_positions(reader.index().random_positions);
  return reader.index();
}

void Saver::recover_last_checkpoints(const std::vector<std::string>& paths) {
  last_checkpoints_.clear();
  for (const std::string& path : paths)
    if (has_a_file(path)) last_checkpoints_.push_back(path);
}

}  // namespace kolo
