#include <kolo/core/training/checkpoint_saver_hook.h>

#include <filesystem>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/training/gathered_state.h>

namespace kolo {

CheckpointSaverHook::CheckpointSaverHook(CheckpointSaverOptions options)
    : options_(std::move(options)), timer_(options_.save_secs, options_.save_steps) {}

void CheckpointSaverHook::begin(Graph& graph) {
  global_step_ = require_global_step(graph, "CheckpointSaverHook");
}

void CheckpointSaverHook::after_create_session(Session& session) {
  std::error_code error;
  std::filesystem::create_directories(options_.checkpoint_dir, error);
  if (error) throw_file_error("make the checkpoint folder " + options_.checkpoint_dir, error.value());
  // Here and not in begin(): by now every hook has added its variables.
  if (!options_.saver) options_.saver = std::make_shared<Saver>(session.graph());
  step_of_last_run_ = read_global_step(session, global_step_);
  needs_all_ranks_ = is_spread_over_ranks(session);
  save(session, step_of_last_run_);
}

SessionRunArgs CheckpointSaverHook::before_run(RunContext& context) {
  if (timer_.is_due(step_of_last_run_ + 1)) context.announce_save();
  return {};
}

void CheckpointSaverHook::after_run(RunContext& context, const RunValues&) {
  const std::int64_t step = read_global_step(context.session(), global_step_);
  // Between two updates that several runs make together a checkpoint would hold half of one.
  if (std::exchange(step_of_last_run_, step) == step) return;
  if (needs_all_ranks_ && context.session().gathered_tensors() == nullptr) return;
  if (timer_.is_due(step)) save(context.session(), step);
}

void CheckpointSaverHook::end(Session& session) {
  const std::int64_t step = read_global_step(session, global_step_);
  if (timer_.last_step() != step) save(session, step);
}

void CheckpointSaverHook::save(Session& session, std::int64_t step) {
  const std::string prefix =
      (std::filesystem::path(options_.checkpoint_dir) / options_.checkpoint_basename).string();
  log_info("Saving checkpoints for {} into {}.", step, prefix);
  std::map<std::string, std::string> state;
  for (const SavedState& part : options_.saved_state) state[part.name] = part.save();
  options_.saver->save(session, prefix, step, state);
  timer_.fired(step);
}

}  // namespace kolo
