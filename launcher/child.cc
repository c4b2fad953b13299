#include <kolo/launcher/child.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>

namespace kolo::launcher {
namespace {

std::array<OwnedFd, 2> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw ResourceExhaustedError("cannot make a pipe: {}", std::strerror(errno));
  return {OwnedFd(ends[0]), OwnedFd(ends[1])};
}

// Between fork and exec: async-signal-safe calls only. Writes errno to `failure` if the program cannot be
// executed.
[[noreturn]] void become(char* const* argv, pid_t parent, int out, int err, int failure) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // the parent ended before PDEATHSIG was set
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execvp(argv[0], argv);
  const int code = errno;
  [[maybe_unused]] const ssize_t written = write(failure, &code, sizeof code);
  _exit(127);
}

std::optional<ProcessId> child_in(const std::filesystem::path& folder, pid_t parent) {
  const auto pid = parse_int64(folder.filename().string());
  if (!pid) return std::nullopt;
  std::ifstream file(folder / "stat");  // gone by now, or: pid (name) state parent group …
  const std::string stat(std::istreambuf_iterator<char>(file), {});
  const size_t name_end = stat.rfind(')');  // the name itself may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  char state = 'Z';
  pid_t its_parent = 0, group = 0;
  fields >> state >> its_parent >> group;
  if (its_parent != parent || state == 'Z') return std::nullopt;
  return ProcessId{static_cast<pid_t>(*pid), group};
}

}  // namespace

OwnedFd::~OwnedFd() {
  if (fd_ >= 0) close(fd_);
}

Child start_child(const std::vector<std::string>& argv) {
  auto out = make_pipe(), err = make_pipe(), failure = make_pipe();
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw ResourceExhaustedError("cannot start {}: {}", argv[0], std::strerror(errno));
  if (pid == 0) become(words.data(), parent, out[1].get(), err[1].get(), failure[1].get());
  setpgid(pid, pid);  // here too: a signal to the group must not come before the child has made it
  failure[1] = OwnedFd();
  int code = 0;
  if (read(failure[0].get(), &code, sizeof code) == sizeof code) {
    waitpid(pid, nullptr, 0);
    throw NotFoundError("cannot start {}: {}", argv[0], std::strerror(code));
  }
  fcntl(out[0].get(), F_SETFL, O_NONBLOCK);
  fcntl(err[0].get(), F_SETFL, O_NONBLOCK);
  return {pid, std::move(out[0]), std::move(err[0])};
}

int shell_code(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

std::vector<ProcessId> children_of(pid_t parent) {
  std::vector<ProcessId> children;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error))
    if (const auto child = child_in(entry->path(), parent)) children.push_back(*child);
  return children;
}

int signal_children_of(pid_t parent, int signal) {
  const auto children = children_of(parent);
  for (const ProcessId& child : children) {
    const bool own_group = child.group != getpgid(parent) && child.group != getpgrp() && child.group > 1;
    kill(own_group ? -child.group : child.pid, signal);
  }
  return static_cast<int>(children.size());
}

int signal_ranks_below(pid_t mpirun, int signal) {
  int count = 0;
  for (const ProcessId& child : children_of(mpirun)) {
    std::ifstream file("/proc/" + std::to_string(child.pid) + "/environ");
    const std::string variables(std::istreambuf_iterator<char>(file), {});
    if (variables.find("OMPI_COMM_WORLD_RANK=") == std::string::npos) continue;
    kill(child.pid, signal);
    ++count;
  }
  return count;
}

}  // namespace kolo::launcher
