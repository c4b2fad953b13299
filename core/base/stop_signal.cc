#include <kolo/core/base/stop_signal.h>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace kolo {
namespace {

std::atomic<int> terminations{0};  // written by the handler; lock-free, so legal there
std::atomic<bool> stop{false};

std::atomic<std::int64_t> completed_step{-1};
std::atomic<bool> under_kolorun{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

// Async-signal-safe: no allocation, no stdio.
void write_last_step(std::int64_t step) {
  char line[sizeof kLastStepMarker + 24];
  std::memcpy(line, kLastStepMarker, sizeof kLastStepMarker - 1);
  char* end = std::to_chars(line + sizeof kLastStepMarker - 1, line + sizeof line - 1, step).ptr;
  *end++ = '\n';
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, end - line);
}

void on_signal(int number) {
  const int interrupted_errno = errno;  // write() may change it under a system call's caller
  if (number == SIGTERM) {
    if (terminations.fetch_add(1) > 0) _exit(128 + SIGTERM);
    const std::int64_t step = completed_step.load();
    if (under_kolorun.load() && step >= 0) write_last_step(step);
  }
  stop.store(true);
  errno = interrupted_errno;
}

}  // namespace

void install_stop_signals() {
  const char* launcher = std::getenv("KOLO_LAUNCHER");
  under_kolorun.store(launcher != nullptr && std::strcmp(launcher, "kolorun") == 0);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
}

void report_completed_step(std::int64_t step) { completed_step.store(step); }

bool stop_signal_received() { return stop.load(); }

void clear_stop_signal() {
  stop.store(false);
  terminations.store(0);
}

}  // namespace kolo
