#include <kolo/core/training/hooks.h>

#include <filesystem>
#include <utility>

#include <kolo/core/base/durable_file.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/folder_lock.h>
#include <kolo/core/training/non_finite.h>
#include <kolo/core/training/rank_state.h>

namespace kolo {

StepTimer::StepTimer(std::optional<double> every_secs, std::optional<std::int64_t> every_steps)
    : every_secs_(every_secs), every_steps_(every_steps) {
  if (every_secs && every_steps)
    throw InvalidArgumentError("Can not provide both every_secs and every_steps.");
  if (!every_secs && !every_steps)
    throw InvalidArgumentError("Either every_secs or every_steps should be provided.");
  if (every_secs && !(*every_secs > 0))
    throw InvalidArgumentError("every_secs is {}; it must be above 0", *every_secs);
  if (every_steps && *every_steps <= 0)
    throw InvalidArgumentError("every_steps is {}; it must be above 0", *every_steps);
}

bool StepTimer::is_due(std::int64_t step, Clock::time_point now) const {
  if (!last_step_) return true;
  if (step == *last_step_) return false;
  if (every_steps_) return step >= *last_step_ + *every_steps_;
  return std::chrono::duration<double>(now - last_time_).count() >= *every_secs_;
}

void StepTimer::fired(std::int64_t step, Clock::time_point now) {
  last_step_ = step;
  last_time_ = now;
}

CheckpointSaverHook::CheckpointSaverHook(CheckpointSaverOptions options)
    : options_(std::move(options)), timer_(options_.save_secs, options_.save_steps) {}

CheckpointSaverHook::~CheckpointSaverHook() = default;

// The folder first of all: nobody may change it between the restoring from it and the first save.
void CheckpointSaverHook::begin(Graph& graph) {
  global_step_ = require_global_step(graph, "CheckpointSaverHook");
  make_checkpoint_folder(options_.checkpoint_dir);
  lock_.reset();
  lock_ = std::make_unique<detail::FolderLock>(options_.checkpoint_dir);
  // Without the lock they could be another process's that is just writing them.
  if (lock_->is_held()) remove_stale_temporaries(options_.checkpoint_dir, options_.checkpoint_basename);
}

void CheckpointSaverHook::after_restore(Session&, const std::string& checkpoint) { restored_ = checkpoint; }

void CheckpointSaverHook::after_create_session(Session& session) {
  // Here and not in begin(): by now every hook has added its variables.
  if (!options_.saver) {
    options_.saver = std::make_shared<Saver>(session.graph());
    options_.saver->recover_last_checkpoints(
        paths_oldest_first(options_.checkpoint_dir, list_checkpoints(options_.checkpoint_dir)));
  }
  step_of_last_run_ = read_global_step(session, global_step_);
  needs_all_ranks_ = is_spread_over_ranks(session);
  timer_ = StepTimer(options_.save_secs, options_.save_steps);
  // Written once more, the only good checkpoint would be gone while its two files are replaced.
  const std::string restored = std::exchange(restored_, "");
  std::error_code error;
  if (restored.empty() || !std::filesystem::equivalent(folder_of(restored), options_.checkpoint_dir, error))
    return;
  options_.saver->adopt(restored);
  timer_.fired(step_of_last_run_);
}

SessionRunArgs CheckpointSaverHook::before_run(RunContext& context) {
  if (timer_.is_due(step_of_last_run_ + 1)) context.announce_save();
  return {};
}

void CheckpointSaverHook::after_run(RunContext& context, const RunValues& values) {
  const std::int64_t step = read_global_step(context.session(), global_step_);
  // Between two updates that several runs make together a checkpoint would hold half of one.
  if (std::exchange(step_of_last_run_, step) == step) return;
  if (needs_all_ranks_ && values.gathered == nullptr) return;
  if (timer_.is_due(step)) write(context.session(), step, values.gathered);
}

void CheckpointSaverHook::save(Session& session, const GatheredState* gathered) {
  const std::int64_t step = read_global_step(session, global_step_);
  if (timer_.last_step() != step) write(session, step, gathered);
}

void CheckpointSaverHook::end(Session&) { lock_.reset(); }

std::string CheckpointSaverHook::prefix() const {
  return (std::filesystem::path(options_.checkpoint_dir) / options_.checkpoint_basename).string();
}

void CheckpointSaverHook::write(Session& session, std::int64_t step, const GatheredState* gathered) {
  if (const std::string damage = detail::non_finite_weight(session); !damage.empty()) {
    timer_.fired(step);
    return log_error("step {} is not saved into {}: {}; what was saved before stays as it is", step,
                     options_.checkpoint_dir, damage);
  }
  log_info("Saving checkpoints for {} into {}.", step, prefix());
  std::map<std::string, std::string> state;
  for (const SavedState& part : options_.saved_state) state[part.name] = part.save();
  options_.saver->save(session, prefix(), step, state, gathered);
  timer_.fired(step);
}

StopAtStepHook::StopAtStepHook(StopAtStepOptions options)
    : num_steps_(options.num_steps), last_step_(options.last_step) {
  if (!num_steps_ && !last_step_)
    throw InvalidArgumentError("One of num_steps or last_step must be specified.");
  if (num_steps_ && last_step_)
    throw InvalidArgumentError("Only one of num_steps or last_step can be specified.");
}

void StopAtStepHook::begin(Graph& graph) { global_step_ = require_global_step(graph, "StopAtStepHook"); }

void StopAtStepHook::after_create_session(Session& session) {
  // After a recovery the count goes on from where the first session began.
  if (!last_step_) last_step_ = read_global_step(session, global_step_) + *num_steps_;
}

SessionRunArgs StopAtStepHook::before_run(RunContext& context) {
  if (read_global_step(context.session(), global_step_) + 1 >= *last_step_) context.announce_last_step();
  return {};
}

void StopAtStepHook::after_run(RunContext& context, const RunValues&) {
  if (read_global_step(context.session(), global_step_) >= *last_step_) context.request_stop();
}

}  // namespace kolo
