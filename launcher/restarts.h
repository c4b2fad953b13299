// A job from its first start to its last one.
#pragma once

#include <kolo/launcher/child.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// Runs the job and starts it again as --restarts, --requeue and --elastic say; tells on stderr why. The exit
/// code is kolorun's. Throws what run_job throws.
int run_with_restarts(Options options, Surroundings found, SignalQueue& signals);

}  // namespace kolo::launcher
