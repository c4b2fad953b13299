// One run of a job: mpirun, its output and its signals, from start to end.
#pragma once

#include <kolo/launcher/child.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

struct JobResult {
  int exit_code = 0;
  bool stop_requested = false;  // by a signal to kolorun
};

/// Runs the job and forwards its output and signals until it has ended; tells on stderr which rank died.
/// Every wait for mpirun to end has a deadline once the job was asked to stop or has lost a rank.
/// Throws NotFoundError if mpirun cannot be started.
JobResult run_job(const Options& options, const Surroundings& found, SignalQueue& signals);

}  // namespace kolo::launcher
