#include <kolo/core/base/exit_code.h>

#include <atomic>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/stop_signal.h>

namespace kolo {
namespace {

std::atomic<bool> last_was_stopped{false};
std::atomic<long long> steps_of_training{0};

}  // namespace

namespace detail {

int stopped_exit_code() {
  constexpr int kMost = 125;  // shells use those above
  const bool requeues = env_int64("KOLO_REQUEUE", 0, 0, 1) == 1;
  const auto code =
      static_cast<int>(env_int64("KOLO_STOPPED_EXIT_CODE", requeues ? kTemporaryFailure : 0, 0, kMost));
  if (requeues && code == 0)
    throw InvalidArgumentError(
        "KOLO_REQUEUE=1 needs an exit code that tells a stop from the end; leave KOLO_STOPPED_EXIT_CODE=0 "
        "out, or choose 1 to {}",
        kMost);
  return code;
}

bool was_training_stopped() { return last_was_stopped.load(); }

void note_end_of_training(bool stopped_on_request, long long step) {
  last_was_stopped.store(stopped_on_request);
  if (stopped_on_request && step >= 0 && process().rank == 0) tell_last_step(step, planned_steps());
}

void note_planned_steps(long long steps) { steps_of_training.store(steps); }

long long planned_steps() { return steps_of_training.load(); }

}  // namespace detail

int exit_code() { return last_was_stopped.load() ? detail::stopped_exit_code() : 0; }

}  // namespace kolo
