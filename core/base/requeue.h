// Having a batch system start a stopped job again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/base/batch_job.h>
#include <kolo/core/base/child_program.h>

namespace kolo::detail {

/// Where the training was stopped, as far as it is known.
struct StoppedAt {
  std::optional<std::int64_t> step = {};
  std::optional<std::int64_t> of = {};  // the step at which it is to end
};

/// What to ask the batch system, or why it is not asked.
struct RequeueRequest {
  std::vector<std::string> command = {};
  std::string why_not = {};    // "" if there is a command
  std::string by_itself = {};  // or who starts the job again without being asked, and where: a clause
};

/// Slurm: `scontrol requeue`, unless the job is no batch script, may not be requeued or was cancelled; LSF:
/// `brequeue`; PBS: `qrerun`.
RequeueRequest plan_requeue(const BatchJob& job, const RunProgram& run);

/// Takes a line that the user is to see, and does not keep it.
using SayLine = std::function<void(const std::string& line)>;
/// Asks the batch system to start the job again, and returns whether it does. It says so before it asks:
/// Slurm may end this process, and the one that carries its lines, as soon as it has heard. Another line then
/// tells of a refusal, or that nobody knows whether it was one, which counts as none. who: who asks, at the
/// start of each line. Waits at most 5 s for what it asks
/// first and 30 s for the request.
bool ask_for_requeue(const BatchJob& job, const std::string& who, const StoppedAt& where, const SayLine& say,
                     const RunProgram& run);
/// The same with the programs of this machine.
bool ask_for_requeue(const BatchJob& job, const std::string& who, const StoppedAt& where, const SayLine& say);
/// `kolorun: stopped at step 71 of 400`.
std::string stopped_text(const std::string& who, const StoppedAt& where);

/// How long to wait for the end that a batch system brings to a job that it starts again: its script could
/// else end the job before.
inline constexpr int kWaitForEnd_s = 120;

/// KOLO_REQUEUE=1, in a program that no kolorun has started: kolorun asks itself.
bool wants_requeue();
/// Waits for SIGTERM, which ends the process with `code`, at most kWaitForEnd_s. To be called at the
/// process's end: it takes the signal's handler.
void wait_to_be_ended(int code);

}  // namespace kolo::detail
