// Having a batch system start a stopped job again.
#pragma once

#include <cstdint>
#include <optional>

#include <kolo/launcher/child.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// Asks the batch system to start this job again, tells what it said, and then waits to be ended, at most
/// 120 s. last_step: of the training, where it is known. Returns kolorun's exit code: the stopped one; 99 for
/// Grid Engine, which reads it as the request.
int requeue(const Options& options, std::optional<std::int64_t> last_step, SignalQueue& signals);

}  // namespace kolo::launcher
