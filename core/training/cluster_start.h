// How the workers of a cluster come to variables that have values: the chief gives them, the others wait.
#pragma once

#include <chrono>
#include <functional>

#include <kolo/core/runtime/session.h>
#include <kolo/core/training/scaffold.h>

namespace kolo::detail {

/// True if all global variables of the session's graph have values, which the chief of an earlier time has
/// left.
bool has_values(Session& session);

struct ReadyWait {
  std::chrono::duration<double> poll{30};
  std::chrono::duration<double> most{7200};
  std::chrono::steady_clock::time_point until;  // most, from the first attempt on
};
/// Until the scaffold's ready_for_local_init finds all there; then local variables get their values; and
/// until its `ready` does, too. Says every time what it waits for. Throws DeadlineExceededError `Session was
/// not ready after waiting <n> secs.`, CancelledError when the process is asked to stop.
void wait_until_ready(Session& session, const Scaffold& scaffold, const ReadyWait& wait);

/// Waits for so long, or until the process is asked to stop: then CancelledError that names `what`.
void pause(std::chrono::duration<double> time, const char* what);

}  // namespace kolo::detail
