#include <kolo/core/training/cluster_start.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <thread>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/training/common_start.h>

namespace kolo::detail {

bool has_values(Session& session) {
  return report_uninitialized_variables(session, global_variables(session.graph())).empty();
}

void pause(std::chrono::duration<double> time, const char* what) {
  constexpr std::chrono::milliseconds kSlice(50);
  const auto end = std::chrono::steady_clock::now() + time;
  for (auto left = time;; left = end - std::chrono::steady_clock::now()) {
    if (stop_signal_received()) throw CancelledError("asked to stop by a signal while {}", what);
    if (left.count() <= 0) return;
    std::this_thread::sleep_for(std::min<std::chrono::duration<double>>(left, kSlice));
  }
}

namespace {

std::string told(const std::vector<std::string>& missing) {
  return missing.empty() ? "None" : fmt::format("Variables not initialized: {}", fmt::join(missing, ", "));
}

std::vector<std::string> not_ready_for_local_init(Session& session, const Scaffold& scaffold) {
  if (scaffold.ready_for_local_init) return scaffold.ready_for_local_init(session);
  return report_uninitialized_variables(session, global_variables(session.graph()));
}

}  // namespace

void wait_until_ready(Session& session, const Scaffold& scaffold, const ReadyWait& wait) {
  while (true) {
    const std::vector<std::string> before = not_ready_for_local_init(session, scaffold);
    std::vector<std::string> missing;
    if (before.empty()) {
      initialize_local_variables(session, scaffold);
      missing = not_ready(session, scaffold);
      if (missing.empty()) return;
    }
    log_info("Waiting for model to be ready.  Ready_for_local_init_op:  {}, ready: {}", told(before),
             told(missing));
    if (std::chrono::steady_clock::now() + wait.poll > wait.until)
      throw DeadlineExceededError("Session was not ready after waiting {} secs. {}; is the chief there?",
                                  wait.most.count(), told(before.empty() ? missing : before));
    pause(wait.poll, "waiting for the chief to initialise the variables");
  }
}

}  // namespace kolo::detail
