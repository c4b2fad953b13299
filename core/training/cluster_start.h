// How the workers of a cluster come to variables that have values: the chief gives them, the others wait.
#pragma once

#include <chrono>
#include <functional>

#include <kolo/core/runtime/session.h>

namespace kolo::detail {

/// True if all global variables of the session's graph have values, which the chief of an earlier time has
/// left.
bool has_values(Session& session);
/// One warning where initialising the graph's variables makes those of a training that others go on with
/// begin anew.
void warn_of_values(Session& session);

struct ReadyWait {
  std::chrono::duration<double> poll{30};
  std::chrono::duration<double> most{7200};
  std::chrono::steady_clock::time_point until;  // most, from the first attempt on
};
/// Until all global variables have values; says every time what it waits for. Throws DeadlineExceededError
/// `Session was not ready after waiting <n> secs.`, CancelledError when the process is asked to stop.
void wait_until_ready(Session& session, const ReadyWait& wait);

/// Waits for so long, or until the process is asked to stop: then CancelledError that names `what`.
void pause(std::chrono::duration<double> time, const char* what);

}  // namespace kolo::detail
