#include <kolo/collectives/job/stop_notice.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/stop_signal.h>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kBetweenLooks{20};  // at a command that runs

// In a process group of its own, with the signals of a new program; it reads and says nothing. -1 if it
// cannot be started.
pid_t start_shell(const std::string& command) {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t files;
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_init(&files);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  const char* const argv[] = {"sh", "-c", command.c_str(), nullptr};
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, "/bin/sh", &files, &attributes, const_cast<char* const*>(argv), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return error == 0 ? pid : -1;
}

}  // namespace

std::unique_ptr<StopNotice> StopNotice::from_environment() {
  Plan plan;
  plan.file = env_string("KOLO_STOP_FILE").value_or("");
  plan.command = env_string("KOLO_STOP_WHEN").value_or("");
  if (plan.file.empty() && plan.command.empty()) return nullptr;
  return std::make_unique<StopNotice>(std::move(plan));
}

StopNotice::StopNotice(Plan plan) : plan_(std::move(plan)), end_(eventfd(0, EFD_CLOEXEC)) {
  if (end_ < 0) throw ResourceExhaustedError("cannot make an eventfd: {}", std::strerror(errno));
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "kolo notice");
    block_stop_signals();
    look();
  });
}

StopNotice::~StopNotice() {
  eventfd_write(end_, 1);
  thread_.join();
  ::close(end_);
}

// False if the thread is to end.
bool StopNotice::wait_ms(milliseconds time) const {
  pollfd end = {end_, POLLIN, 0};
  return poll(&end, 1, static_cast<int>(time.count())) <= 0;
}

bool StopNotice::command_says_so() {
  const pid_t pid = start_shell(plan_.command);
  if (pid < 0) return false;
  const auto deadline = Clock::now() + plan_.command_limit;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (Clock::now() < deadline && wait_ms(kBetweenLooks)) continue;
    kill(-pid, SIGKILL);
    waitpid(pid, &status, 0);
    return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void StopNotice::look() {
  auto next_file = Clock::now(), next_command = next_file;
  for (;;) {
    const auto now = Clock::now();
    std::string notice;
    if (!plan_.file.empty() && now >= next_file) {
      next_file = now + plan_.file_every;
      if (access(plan_.file.c_str(), F_OK) == 0) notice = plan_.file + " is there";
    }
    if (!plan_.command.empty() && notice.empty() && now >= next_command) {
      next_command = now + plan_.command_every;
      if (command_says_so()) notice = "\"" + plan_.command + "\" ends with 0";
    }
    if (!notice.empty()) {
      log_warning("this host is about to go: {}; asking all ranks to stop", notice);
      tell_host_goes(process().hostname);
      request_stop();
      return;
    }
    auto next = plan_.file.empty() ? next_command : next_file;
    if (!plan_.command.empty()) next = std::min(next, next_command);
    if (!wait_ms(std::max(milliseconds(1), std::chrono::ceil<milliseconds>(next - Clock::now())))) return;
  }
}

}  // namespace kolo::detail
