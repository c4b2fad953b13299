#include <kolo/core/training/default_hooks.h>

#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/summary/summary_writer.h>
#include <kolo/core/training/hooks.h>

namespace kolo::detail {
namespace {

constexpr double kDefaultSaveSecs = 600;
constexpr std::int64_t kDefaultSummarySteps = 100;

}  // namespace

void check_options(const MonitoredTrainingSessionOptions& options) {
  const bool both_off = options.save_checkpoint_secs == 0.0 && options.save_checkpoint_steps == 0;
  if (options.save_checkpoint_secs && options.save_checkpoint_steps && !both_off)
    throw InvalidArgumentError("Can not provide both every_secs and every_steps.");
  if (options.save_summaries_secs && options.save_summaries_steps)
    throw InvalidArgumentError("Can not provide both every_secs and every_steps.");
  if (!options.checkpoint_dir.empty() && !options.checkpoint_filename_with_path.empty())
    throw InvalidArgumentError(
        "Can not provide both checkpoint_dir and checkpoint_filename_with_path: {} and {}",
        options.checkpoint_dir, options.checkpoint_filename_with_path);
  std::set<std::string> names;
  for (const SavedState& state : options.saved_state)
    if (!names.insert(state.name).second)
      throw InvalidArgumentError("two saved states have the name \"{}\"", state.name);
  if (options.master.empty() && (!options.is_chief || options.adopt || options.sharded))
    throw InvalidArgumentError(
        "is_chief, adopt and sharded are of a session on a cluster; without .master the ranks' first one is "
        "chief");
  if (options.check_drift_steps.value_or(0) < 0)
    throw InvalidArgumentError("check_drift_steps is {}; it must not be negative",
                               *options.check_drift_steps);
  if (options.recovery_wait_secs <= 0 || options.max_wait_secs <= 0)
    throw InvalidArgumentError("recovery_wait_secs is {} and max_wait_secs {}; both must be over 0",
                               options.recovery_wait_secs, options.max_wait_secs);
}

bool saves(const MonitoredTrainingSessionOptions& options) {
  return !options.checkpoint_dir.empty() && options.save_checkpoint_secs != 0.0 &&
         options.save_checkpoint_steps != 0;
}

std::shared_ptr<SessionRunHook> make_saver_hook(const MonitoredTrainingSessionOptions& options,
                                                const std::shared_ptr<Saver>& saver) {
  CheckpointSaverOptions saving{.checkpoint_dir = options.checkpoint_dir,
                                .save_secs = options.save_checkpoint_secs,
                                .save_steps = options.save_checkpoint_steps,
                                .saver = saver,
                                .saved_state = options.saved_state};
  if (!saving.save_secs && !saving.save_steps) saving.save_secs = kDefaultSaveSecs;
  return std::make_shared<CheckpointSaverHook>(std::move(saving));
}

std::vector<std::shared_ptr<SessionRunHook>> make_summary_hooks(
    const MonitoredTrainingSessionOptions& options) {
  std::vector<std::shared_ptr<SessionRunHook>> hooks;
  if (options.summary_dir.empty()) return hooks;
  const auto writer = std::make_shared<SummaryWriter>(options.summary_dir);
  if (options.log_step_count_steps > 0)
    hooks.push_back(std::make_shared<StepCounterHook>(
        StepCounterOptions{.every_n_steps = options.log_step_count_steps, .summary_writer = writer}));
  SummarySaverOptions saving{.summary_writer = writer,
                             .save_steps = options.save_summaries_steps,
                             .save_secs = options.save_summaries_secs,
                             .summary_op = options.scaffold.summary_op};
  if (!saving.save_steps && !saving.save_secs) saving.save_steps = kDefaultSummarySteps;
  if (saving.save_steps != 0 && saving.save_secs != 0.0)
    hooks.push_back(std::make_shared<SummarySaverHook>(std::move(saving)));
  return hooks;
}

}  // namespace kolo::detail
