// A short program of kolorun's own, run to its end for what it prints.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <kolo/launcher/signals.h>

namespace kolo::launcher {

struct CapturedRun {
  bool good = false;  // it ended by itself, in time, with code 0
  std::string out, err;
};

/// Ends the program when `limit` has passed or a signal has come; the signal is then given to this process
/// again, so that `signals` still has it. Throws NotFoundError if it cannot be started.
CapturedRun run_captured(const std::vector<std::string>& command, std::chrono::seconds limit,
                         SignalQueue& signals);

}  // namespace kolo::launcher
