// Waiting for hosts that cannot start ranks yet, as pods that are still being made.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <kolo/launcher/child.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// Tells the user a sentence of kolorun's.
using Say = std::function<void(const std::string& sentence)>;

/// Waits until each host of a job that is not elastic answers, at most options.start_timeout_s, and says for
/// whom. The exit code with which it has given up, or a signal has ended the waiting; it is told. Slurm's
/// daemons are not waited for: a job has its hosts when they are there.
std::optional<int> wait_for_start(const Options& options, const Surroundings& found, SignalQueue& signals,
                                  const Say& say);

/// Takes the signals that have come while nothing runs: the exit code if one is to end this; it is told.
std::optional<int> ended_by_signal(SignalQueue& signals, const Say& say);

}  // namespace kolo::launcher
