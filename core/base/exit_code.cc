#include <kolo/core/base/exit_code.h>

#include <atomic>

#include <kolo/core/base/env.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/stop_signal.h>

namespace kolo {
namespace {

std::atomic<bool> last_was_stopped{false};

}  // namespace

namespace detail {

int stopped_exit_code() {
  constexpr int kMost = 125;  // shells use those above
  return static_cast<int>(env_int64("KOLO_STOPPED_EXIT_CODE", 0, 0, kMost));
}

void note_end_of_training(bool stopped_on_request, long long step) {
  last_was_stopped.store(stopped_on_request);
  if (stopped_on_request && step >= 0 && process().rank == 0) tell_last_step(step);
}

}  // namespace detail

int exit_code() { return last_was_stopped.load() ? detail::stopped_exit_code() : 0; }

}  // namespace kolo
