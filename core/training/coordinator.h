// Threads beside a training loop: they end with it, and it ends with the first error of one of them.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace kolo {

/// A monitored session has one for each of its sessions, which hooks get by after_create_session(). Any
/// thread, but for join() and the destructor: its owner's.
class Coordinator {
 public:
  Coordinator();
  /// Asks for a stop and waits for the threads, as long as it takes.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// Runs `body` on a thread of its own, with the token of the stop: a body that waits in a run of a session
  /// gives it to RunOptions::stop_token. What it throws is an error of the training; CancelledError after a
  /// stop request is none. After a stop request it begins all the same, so that the error of one thread is
  /// not hidden by the start of the next. Throws ResourceExhaustedError if the system gives no thread.
  void start(const std::string& name, std::function<void(std::stop_token)> body);
  /// The threads are to end. The first call with an error, if no stop was asked for before, is an error of
  /// the training; later ones are logged.
  void request_stop(const std::exception_ptr& error = {});
  bool should_stop() const;

  /// Asks for a stop, and waits for the threads to end. Throws FailedPreconditionError `Coordinator stopped
  /// with threads still running: <names>` when `grace` is over.
  void join(std::chrono::milliseconds grace);

  /// For who runs the training: the error, once; null where there is none, or it has been taken.
  std::exception_ptr take_error();
  /// A stop is asked for here with the error: it ends runs of the training loop.
  std::stop_token error_token() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kolo
