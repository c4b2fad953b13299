// What calls between the processes of a cluster have in common: how long they may take, how they are ended,
// and how an error that only follows from another one is told from it.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo::detail {

/// When who waits for another process gives up: at a time, and when a stop is asked for. Without either: as
/// long as it takes, and both processes live.
class Deadline {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Deadline() = default;
  Deadline(Time time) : time_(time) {}
  Deadline(std::optional<Time> time, std::stop_token stop) : time_(time), stop_(std::move(stop)) {}

  /// Of the time.
  explicit operator bool() const { return time_.has_value(); }
  Time operator*() const { return *time_; }
  const std::optional<Time>& time() const { return time_; }
  const std::stop_token& stop() const { return stop_; }
  /// This time, and another stop.
  Deadline with(std::stop_token stop) const { return {time_, std::move(stop)}; }
  /// The same stop, and this time, if there is one, shifted.
  Deadline shifted(std::chrono::milliseconds by) const;
  /// The same stop, and this time, or `patience` from now if that is earlier.
  Deadline at_most(std::chrono::milliseconds patience) const;

 private:
  std::optional<Time> time_;
  std::stop_token stop_;
};

/// A call under way, or over. Destroying it neither cancels nor waits.
class Call {
 public:
  virtual ~Call() = default;
  /// Asks for its end: it ends with CancelledError unless it is over by then. Any thread, any number of
  /// times, does not wait.
  virtual void cancel() = 0;
};

/// Nothing to cancel: a request that found nothing to be asked, or values that come on another call, which
/// ends with the step.
class NoCall final : public Call {
 public:
  void cancel() override {}
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
