#include <kolo/launcher/requeue.h>

#include <poll.h>
#include <signal.h>

#include <chrono>

#include <fmt/core.h>

#include <kolo/core/base/requeue.h>
#include <kolo/launcher/output.h>

namespace kolo::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kGridEngineStartsAgain = 99;

// SIGTERM is the batch system's way to end the job.
void wait_to_be_ended(SignalQueue& signals) {
  const auto deadline = Clock::now() + std::chrono::seconds(detail::kWaitForEnd_s);
  while (Clock::now() < deadline) {
    pollfd ready = {signals.fd(), POLLIN, 0};
    poll(&ready, 1,
         static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count()));
    while (const auto number = signals.next())
      if (*number == SIGTERM || *number == SIGINT) return;
  }
}

}  // namespace

int requeue(const Options& options, const detail::StoppedAt& where, SignalQueue& signals) {
  constexpr const char* kWho = "kolorun";
  const detail::BatchJob job = batch_job_of(options.allotment);
  if (job.system == "Grid Engine") {
    tell_user(fmt::format("{}; Grid Engine starts job {} again", detail::stopped_text(kWho, where), job.job));
    return kGridEngineStartsAgain;
  }
  if (detail::ask_for_requeue(job, kWho, where, tell_user)) wait_to_be_ended(signals);
  return options.stopped_exit_code;
}

int requeue_unless_ended(const Options& options, const detail::StoppedAt& where, SignalQueue& signals,
                         int code) {
  constexpr int kGaveUp = 1;
  const bool gets_others = options.elastic && code == kGaveUp;  // else a misspelt host would come each time
  const bool may_go_on =
      gets_others || code == detail::kBySignal + SIGTERM || code == detail::kBySignal + SIGUSR1;
  return may_go_on && options.requeue ? requeue(options, where, signals) : code;
}

}  // namespace kolo::launcher
