#include <kolo/core/training/cluster_start.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <thread>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/runtime/session_variables.h>
#include <kolo/core/training/global_step.h>

namespace kolo::detail {

bool has_values(Session& session) {
  return report_uninitialized_variables(session, global_variables(session.graph())).empty();
}

void warn_of_values(Session& session) {
  const std::vector<Variable> variables = global_variables(session.graph());
  const std::vector<bool> initialized = are_initialized(session, variables);
  const auto there = std::count(initialized.begin(), initialized.end(), true);
  if (there == 0) return;
  const Variable step = find_global_step(session.graph());
  log_warning("initialising {} variables that have values on the parameter servers{}", there,
              step && is_initialized(session, step)
                  ? fmt::format(" (global_step {})", read_global_step(session, step))
                  : "");
}

void pause(std::chrono::duration<double> time, const char* what) {
  constexpr std::chrono::milliseconds kSlice(50);
  const auto end = std::chrono::steady_clock::now() + time;
  for (auto left = time; left.count() > 0; left = end - std::chrono::steady_clock::now()) {
    if (stop_signal_received()) throw CancelledError("asked to stop by a signal while {}", what);
    std::this_thread::sleep_for(std::min<std::chrono::duration<double>>(left, kSlice));
  }
}

void wait_until_ready(Session& session, const ReadyWait& wait) {
  const std::vector<Variable> variables = global_variables(session.graph());
  while (true) {
    const std::vector<std::string> missing = report_uninitialized_variables(session, variables);
    if (missing.empty()) return;
    log_info(
        "Waiting for model to be ready.  Ready_for_local_init_op:  None, ready: Variables not initialized: "
        "{}",
        fmt::join(missing, ", "));
    if (std::chrono::steady_clock::now() + wait.poll > wait.until)
      throw DeadlineExceededError(
          "Session was not ready after waiting {} secs. Variables not initialized: {}; is the chief there?",
          wait.most.count(), fmt::join(missing, ", "));
    pause(wait.poll, "waiting for the chief to initialise the variables");
  }
}

}  // namespace kolo::detail
