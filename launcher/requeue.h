// Having a batch system start a stopped job again.
#pragma once

#include <cstdint>
#include <optional>

#include <kolo/launcher/allotment.h>
#include <kolo/launcher/child.h>
#include <kolo/launcher/options.h>

namespace kolo::launcher {

/// What to ask the batch system, or why it is not asked.
struct RequeueRequest {
  std::vector<std::string> command;
  std::string why_not;  // "" if there is a command
};

/// Slurm: `scontrol requeue`, unless the job is no batch script or may not be requeued; LSF: `brequeue`; PBS:
/// `qrerun`.
RequeueRequest plan_requeue(const std::optional<Allotment>& allotment, const Ask& ask);

/// Asks the batch system to start this job again, tells what it said, and then waits to be ended, at most
/// 120 s. last_step: of the training, where it is known. Returns kolorun's exit code: the stopped one; 99 for
/// Grid Engine, which reads it as the request.
int requeue(const Options& options, std::optional<std::int64_t> last_step, SignalQueue& signals);

}  // namespace kolo::launcher
