#include <kolo/core/base/stop_signal.h>

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include <kolo/core/base/launcher.h>
#include <kolo/core/base/process.h>

namespace kolo {
namespace {

std::atomic<int> terminations{0};  // written by the handler; lock-free, so legal there
std::atomic<bool> stop{false};
std::atomic<std::int64_t> sigterm_at_ms{-1};  // of steady_clock

std::atomic<bool> record_wanted{false};
std::atomic<bool> last_words{false};

std::atomic<std::int64_t> completed_step{-1};
std::atomic<bool> under_kolorun{false};
std::atomic<bool> times_steps{false};
std::atomic<std::int64_t> completed_at_ms{0}, told_at_ms{0};  // of steady_clock
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Async-signal-safe: no allocation, no stdio.
void write_last_step(std::int64_t step, std::int64_t of = 0) {
  char line[sizeof kLastStepMarker + 80];
  std::memcpy(line, kLastStepMarker, sizeof kLastStepMarker - 1);
  char* end = std::to_chars(line + sizeof kLastStepMarker - 1, line + sizeof line - 1, step).ptr;
  if (times_steps.load()) {
    *end++ = ' ';
    end = std::to_chars(end, line + sizeof line - 1, now_ms() - completed_at_ms.load()).ptr;
  }
  if (of > 0) {
    constexpr char kOf[] = " of ";
    std::memcpy(end, kOf, sizeof kOf - 1);
    end = std::to_chars(end + sizeof kOf - 1, line + sizeof line - 1, of).ptr;
  }
  *end++ = '\n';
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, end - line);
}

void tell_at_the_keyboard() {
  constexpr char kText[] = "\nstopping after this step; Ctrl-C again ends at once\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
}

void on_signal(int number) {
  const int interrupted_errno = errno;  // write() may change it under a system call's caller
  if (terminations.fetch_add(1) > 0) _exit(128 + number);
  if (number == SIGTERM) sigterm_at_ms.store(now_ms());
  const std::int64_t step = completed_step.load();
  if (under_kolorun.load() && step >= 0) write_last_step(step);
  if (number == SIGINT) tell_at_the_keyboard();
  stop.store(true);
  errno = interrupted_errno;
}

void on_record_signal(int number) {
  if (number == SIGTERM && last_words.exchange(true)) _exit(128 + SIGTERM);
  if (number == SIGUSR2) record_wanted.store(true);
}

std::array<char, 320> host_goes_line{};  // of this host; written before the handler is there
size_t host_goes_bytes = 0;

// SIGUSR1 alone. kolorun's value says that this host goes, not only that the ranks are to stop.
void on_request(int, siginfo_t* info, void*) {
  const int interrupted_errno = errno;
  const bool host_goes = info->si_code == SI_QUEUE && info->si_value.sival_int == kHostGoesValue;
  if (host_goes && under_kolorun.load()) [[maybe_unused]]
    const ssize_t written = write(STDERR_FILENO, host_goes_line.data(), host_goes_bytes);
  stop.store(true);
  errno = interrupted_errno;
}

void handle_requests() {
  const std::string line = kHostGoesMarker + process().hostname.substr(0, 256) + "\n";
  host_goes_bytes = line.copy(host_goes_line.data(), host_goes_line.size());
  struct sigaction action = {};
  action.sa_sigaction = on_request;
  action.sa_flags = SA_RESTART | SA_ONSTACK | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGUSR1, &action, nullptr);
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

bool is_handled_by(int number, void (*handler)(int)) {
  struct sigaction action = {};
  return sigaction(number, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
         action.sa_handler == handler;
}

// The handler must not run on the stack of a thread that computes. Kernels that oneDNN 2.6 generates at run
// time (its sgemm, for AVX2 and later) keep data further below the stack pointer than the 128 bytes that a
// signal spares; a signal frame in their place makes them write anywhere. The kernel of the system hands a
// signal for the process to the main thread as long as that does not block it.
void give_this_thread_a_signal_stack() {
  constexpr std::size_t kBytes = 64 << 10;  // the frame of the widest registers takes 11 KiB
  alignas(64) static std::byte memory[kBytes];
  static std::atomic_flag taken = ATOMIC_FLAG_INIT;
  stack_t stack = {};
  if (sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) == 0) return;  // the user's own
  if (taken.test_and_set()) return;
  stack.ss_sp = memory;
  stack.ss_size = kBytes;
  stack.ss_flags = 0;
  sigaltstack(&stack, nullptr);
}

}  // namespace

void install_stop_signals() {
  give_this_thread_a_signal_stack();
  under_kolorun.store(detail::is_under_kolorun());
  times_steps.store(under_kolorun.load() && std::getenv("KOLO_JOB_START") != nullptr);
  handle(SIGTERM, on_signal);
  handle_requests();
  if (is_handled_by(SIGINT, SIG_DFL)) handle(SIGINT, on_signal);
  static std::atomic_flag told = ATOMIC_FLAG_INIT;
  if (!times_steps.load() || told.test_and_set()) return;
  const std::string line = std::string(kTakesRequestsMarker) + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

void block_stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void report_completed_step(std::int64_t step) {
  completed_step.store(step);
  if (!times_steps.load()) return;
  constexpr std::int64_t kBetweenWords_ms = 250;
  const std::int64_t now = now_ms();
  completed_at_ms.store(now);
  if (process().rank != 0 || now - told_at_ms.load() < kBetweenWords_ms) return;
  told_at_ms.store(now);
  write_last_step(step);
}

void tell_last_step(std::int64_t step, std::int64_t of) {
  if (under_kolorun.load() && step >= 0) write_last_step(step, of);
}

std::int64_t last_completed_step() { return completed_step.load(); }

std::optional<std::chrono::milliseconds> time_since_sigterm() {
  const std::int64_t at = sigterm_at_ms.load();
  return at < 0 ? std::nullopt : std::optional(std::chrono::milliseconds(now_ms() - at));
}

bool stop_signal_received() { return stop.load(); }

void request_stop() { stop.store(true); }

void tell_host_goes(const std::string& host) {
  if (!detail::is_under_kolorun()) return;
  const std::string line = kHostGoesMarker + host + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

void install_record_signals() {
  give_this_thread_a_signal_stack();
  if (is_handled_by(SIGTERM, SIG_DFL)) handle(SIGTERM, on_record_signal);
  if (is_handled_by(SIGUSR2, SIG_DFL)) handle(SIGUSR2, on_record_signal);
}

void remove_record_signals() {
  if (is_handled_by(SIGTERM, on_record_signal)) handle(SIGTERM, SIG_DFL);
}

bool take_record_request() { return record_wanted.exchange(false); }

bool sigterm_received() { return last_words.load(); }

bool is_about_to_end() { return terminations.load() > 0 || sigterm_received(); }

void end_by_sigterm() {
  handle(SIGTERM, SIG_DFL);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  raise(SIGTERM);
  _exit(128 + SIGTERM);
}

void clear_stop_signal() {
  stop.store(false);
  terminations.store(0);
  sigterm_at_ms.store(-1);
}

}  // namespace kolo
