#include <kolo/core/base/child_program.h>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kBetweenLooks{10};  // at a program that has closed its outputs

void write_to(posix_spawn_file_actions_t& files, int number, int fd) {
  if (fd < 0) posix_spawn_file_actions_addopen(&files, number, "/dev/null", O_RDWR, 0);
  else posix_spawn_file_actions_adddup2(&files, fd, number);
}

// False at the end of the stream.
bool read_some(int fd, std::string& text) {
  char bytes[4096];
  const ssize_t count = read(fd, bytes, sizeof bytes);
  if (count > 0) text.append(bytes, static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

// What it writes until both outputs are closed; false at the deadline.
bool read_outputs(int out, int err, ProgramEnd& end, Clock::time_point deadline) {
  pollfd fds[] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    if (poll(fds, 2, static_cast<int>(left.count())) <= 0) continue;
    if (fds[0].revents != 0 && !read_some(out, end.out)) fds[0].fd = -1;
    if (fds[1].revents != 0 && !read_some(err, end.err)) fds[1].fd = -1;
  }
  return true;
}

// As waitpid tells it, or kLostCode; nothing while it runs.
std::optional<int> status_of_child(pid_t pid, bool waits) {
  int status = 0;
  pid_t ended = 0;
  do ended = waitpid(pid, &status, waits ? 0 : WNOHANG);
  while (ended < 0 && errno == EINTR);
  if (ended == 0) return std::nullopt;
  return ended == pid ? status : kLostCode;
}

// As status_of_child; nothing if it had to be killed.
std::optional<int> wait_for_end(pid_t pid, bool in_time, Clock::time_point deadline) {
  std::optional<int> status;
  while (in_time && !(status = status_of_child(pid, false))) {
    in_time = Clock::now() < deadline;
    poll(nullptr, 0, static_cast<int>(kBetweenLooks.count()));
  }
  if (status) return status;
  kill(-pid, SIGKILL);
  status_of_child(pid, true);
  return std::nullopt;
}

void note_status(ProgramEnd& end, int status, const std::string& program) {
  end.good = status == 0;
  end.is_code_lost = status == kLostCode;
  if (end.is_code_lost) {
    end.err += fmt::format("{}: {}", program, kCodeIsLost);
    return;
  }
  // Not by the shell's code: qrerun ends with exit code 159 where it refuses.
  end.is_ended_by_signal = WIFSIGNALED(status);
  if (end.is_ended_by_signal) end.err += fmt::format("signal {} has ended {}", WTERMSIG(status), program);
}

}  // namespace

int shell_code(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : kBySignal + WTERMSIG(wait_status);
}

std::optional<int> code_of_child(pid_t pid, bool waits) {
  const std::optional<int> status = status_of_child(pid, waits);
  return status && *status != kLostCode ? shell_code(*status) : status;
}

pid_t spawn_program(const std::vector<std::string>& argv, int out, int err) {
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
  write_to(files, STDIN_FILENO, -1);
  write_to(files, STDOUT_FILENO, out);
  write_to(files, STDERR_FILENO, err);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, words[0], &files, &attributes, words.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  errno = error;
  return error == 0 ? pid : -1;
}

ProgramEnd run_program(const std::vector<std::string>& argv, milliseconds limit) {
  ProgramEnd end;
  const auto deadline = Clock::now() + limit;
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0) return {.err = fmt::format("no pipe for {}", argv[0])};
  if (pipe2(err, O_CLOEXEC) != 0) {
    close(out[0]), close(out[1]);
    return {.err = fmt::format("no pipe for {}", argv[0])};
  }
  const pid_t pid = spawn_program(argv, out[1], err[1]);
  const int error = errno;
  close(out[1]), close(err[1]);
  if (pid < 0) {
    end.err = fmt::format("cannot start {}: {}", argv[0], std::strerror(error));
  } else {
    const auto status = wait_for_end(pid, read_outputs(out[0], err[0], end, deadline), deadline);
    if (status) note_status(end, *status, argv[0]);
    else end.err += fmt::format("{} did not end within {:g} s", argv[0], limit.count() / 1000.0);
  }
  close(out[0]), close(err[0]);
  return end;
}

ProgramEnd ask_program(const std::vector<std::string>& argv) {
  return run_program(argv, std::chrono::seconds(5));
}

}  // namespace kolo::detail
