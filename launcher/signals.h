// Signals as events in a poll loop.
#pragma once

#include <optional>

#include <kolo/launcher/child.h>

namespace kolo::launcher {

/// While it lives, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 and SIGCHLD wait here instead of acting on the
/// process, and SIGPIPE is ignored. One per process, made before any thread. Children made by start_child do
/// not inherit this.
class SignalQueue {
 public:
  SignalQueue();
  /// For poll: readable when next() has one.
  int fd() const { return fd_.get(); }
  /// The next signal's number; never waits.
  std::optional<int> next();

 private:
  OwnedFd fd_;
};

}  // namespace kolo::launcher
