// The hooks that a monitored session makes by itself for its chief.
#pragma once

#include <memory>
#include <vector>

#include <kolo/core/training/hook.h>
#include <kolo/core/training/monitored_session_options.h>
#include <kolo/core/training/saver.h>

namespace kolo::detail {

/// Throws InvalidArgumentError for options that contradict each other.
void check_options(const MonitoredTrainingSessionOptions& options);

/// Whether the session saves checkpoints.
bool saves(const MonitoredTrainingSessionOptions& options);
std::shared_ptr<SessionRunHook> make_saver_hook(const MonitoredTrainingSessionOptions& options,
                                                const std::shared_ptr<Saver>& saver);

/// What counts steps and writes summaries into summary_dir, in the order in which they are called; none
/// without it.
std::vector<std::shared_ptr<SessionRunHook>> make_summary_hooks(
    const MonitoredTrainingSessionOptions& options);

}  // namespace kolo::detail
