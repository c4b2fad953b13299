// What calls between the processes of a cluster have in common: how long they may take, how they are ended,
// and how an error that only follows from another one is told from it.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include <kolo/core/base/error.h>

namespace kolo::detail {

/// Nothing: as long as it takes, and both processes live.
using Deadline = std::optional<std::chrono::steady_clock::time_point>;

/// A call under way, or over. Destroying it neither cancels nor waits.
class Call {
 public:
  virtual ~Call() = default;
  /// Asks for its end: it ends with CancelledError unless it is over by then. Any thread, any number of
  /// times, does not wait.
  virtual void cancel() = 0;
};

/// An error that another one of the same step has brought about (a part that was cancelled, a peer's value
/// that will not come): it is never the one that the user is told. It crosses processes with its mark.
class ConsequenceError final : public Error {
 public:
  ConsequenceError(Code code, const std::string& message) : Error(code, message) {}
};
bool is_consequence(const std::exception_ptr& error);

/// `/job:ps/replica:0/task:1`
std::string task_name(const std::string& job, int index);

}  // namespace kolo::detail
