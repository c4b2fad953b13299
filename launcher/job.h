// One run of a job: mpirun, or srun, its output and its signals, from start to end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <kolo/launcher/child.h>
#include <kolo/launcher/mpirun_command.h>
#include <kolo/launcher/options.h>
#include <kolo/launcher/output_files.h>
#include <kolo/launcher/stop_time.h>

namespace kolo::launcher {

struct JobResult {
  int exit_code = 0;
  bool stop_requested = false;                 // by a signal to kolorun, or since the job's time ends
  std::optional<std::int64_t> last_step = {};  // the largest that a rank has told
  std::string end = {};                        // of a job that failed, as kolorun has told it; may be empty
};

/// Runs the job and forwards its output and signals until it has ended; tells on stderr which rank died.
/// Every wait for mpirun to end has a deadline once the job was asked to stop or has lost a rank.
/// stop_time: when the ranks are asked to stop by themselves. files: those of --log-dir, or none. Throws
/// NotFoundError if mpirun or srun cannot be started.
JobResult run_job(const Options& options, const Surroundings& found, StopTime& stop_time,
                  SignalQueue& signals, OutputFiles* files);

}  // namespace kolo::launcher
