#include <kolo/launcher/requeue.h>

#include <poll.h>
#include <signal.h>

#include <chrono>

#include <fmt/core.h>

#include <kolo/core/base/error.h>

namespace kolo::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLongestWait{120};
constexpr std::chrono::seconds kLongestAnswer{30};
constexpr int kGridEngineStartsAgain = 99;

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// The batch script must not end the job before the batch system does. SIGTERM is its way to say so.
void wait_to_be_ended(SignalQueue& signals) {
  const auto deadline = Clock::now() + kLongestWait;
  while (Clock::now() < deadline) {
    pollfd ready = {signals.fd(), POLLIN, 0};
    poll(&ready, 1,
         static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count()));
    while (const auto number = signals.next())
      if (*number == SIGTERM || *number == SIGINT) return;
  }
}

}  // namespace

RequeueRequest plan_requeue(const std::optional<Allotment>& allotment, const Ask& ask) {
  if (!allotment || allotment->job.empty()) return {{}, "this is no batch job"};
  if (allotment->system == "LSF") return {{"brequeue", allotment->job}, ""};
  if (allotment->system == "PBS") return {{"qrerun", allotment->job}, ""};
  if (allotment->system != "Slurm") return {{}, fmt::format("{} has no command for it", allotment->system)};
  const std::string job = ask({"scontrol", "show", "job", allotment->job}).value_or("");
  for (const char* obstacle : {"Requeue=0", "BatchFlag=0"})
    if (job.find(obstacle) != std::string::npos)
      return {{}, fmt::format("scontrol show job says {}", obstacle)};
  return {{"scontrol", "requeue", allotment->job}, ""};
}

int requeue(const Options& options, std::optional<std::int64_t> last_step, SignalQueue& signals) {
  const auto& allotment = options.allotment;
  const std::string system = allotment ? allotment->system : "the system";
  const std::string stopped =
      last_step ? fmt::format("kolorun: stopped at step {}", *last_step) : std::string("kolorun: stopped");
  if (allotment && allotment->system == "Grid Engine") {
    fmt::print(stderr, "{}; Grid Engine starts job {} again\n", stopped, allotment->job);
    return kGridEngineStartsAgain;
  }
  RequeueRequest request = plan_requeue(allotment, ask_program);
  if (request.why_not.empty()) {
    try {
      const CapturedRun run = run_captured(request.command, kLongestAnswer, nullptr);
      if (!run.good) request.why_not = one_line(run.err.empty() ? run.out : run.err);
    } catch (const NotFoundError& error) {
      request.why_not = error.what();
    }
    if (request.why_not.empty()) {
      fmt::print(stderr, "{}; {} starts job {} again\n", stopped, system, allotment->job);
      wait_to_be_ended(signals);
      return options.stopped_exit_code;
    }
  }
  fmt::print(stderr, "{}; {} did not start the job again: {}\n", stopped, system, request.why_not);
  return options.stopped_exit_code;
}

}  // namespace kolo::launcher
