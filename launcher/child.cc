#include <kolo/launcher/child.h>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>

#include <kolo/core/base/child_program.h>
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
[[noreturn]] void become(char* const* argv, pid_t parent, int in, int out, int err, int failure) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // the parent ended before PDEATHSIG was set
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  if (in >= 0) dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execvp(argv[0], argv);
  const int code = errno;
  [[maybe_unused]] const ssize_t written = write(failure, &code, sizeof code);
  _exit(127);
}

// Of /proc/PID/stat, `pid (name) state parent group …`, what follows the name, which may hold anything.
std::string fields_behind_name(const std::filesystem::path& folder) {
  const std::string stat = contents_of(folder / "stat");
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos ? "" : stat.substr(name_end + 1);
}

std::optional<ProcessId> child_in(const std::filesystem::path& folder, pid_t parent) {
  const auto pid = parse_int64(folder.filename().string());
  if (!pid) return std::nullopt;
  std::istringstream fields(fields_behind_name(folder));
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

void fill_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0) [[maybe_unused]]
      const int lowest_free = open("/dev/null", O_RDWR);
}

void learn_how_children_end() { signal(SIGCHLD, SIG_DFL); }

Child start_child(const std::vector<std::string>& argv, Input input) {
  auto out = make_pipe(), err = make_pipe(), failure = make_pipe();
  const OwnedFd in(input == Input::none ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw ResourceExhaustedError("cannot start {}: {}", argv[0], std::strerror(errno));
  if (pid == 0) become(words.data(), parent, in.get(), out[1].get(), err[1].get(), failure[1].get());
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

std::string contents_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();  // an iterator of the stream would throw at the error
  return text.str();
}

std::chrono::milliseconds age_of(pid_t pid) {
  constexpr int kFieldsBefore = 19;  // from the state to itrealvalue
  std::istringstream fields(fields_behind_name("/proc/" + std::to_string(pid)));
  std::string skipped;
  for (int i = 0; i < kFieldsBefore; ++i) fields >> skipped;
  std::int64_t start_ticks = 0;
  timespec now = {};
  if (!(fields >> start_ticks) || clock_gettime(CLOCK_BOOTTIME, &now) != 0)
    return std::chrono::milliseconds::max();
  const auto since_boot = std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  const std::chrono::milliseconds start(start_ticks * 1000 / sysconf(_SC_CLK_TCK));
  return std::chrono::duration_cast<std::chrono::milliseconds>(since_boot) - start;
}

std::vector<ProcessId> children_of(pid_t parent) {
  std::vector<ProcessId> children;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error))
    if (const auto child = child_in(entry->path(), parent)) children.push_back(*child);
  return children;
}

int signal_children_of(pid_t parent, int signal, pid_t spared) {
  auto children = children_of(parent);
  std::erase_if(children, [&](const ProcessId& child) { return child.pid == spared; });
  for (const ProcessId& child : children) {
    const bool own_group = child.group != getpgid(parent) && child.group != getpgrp() && child.group > 1;
    kill(own_group ? -child.group : child.pid, signal);
  }
  return static_cast<int>(children.size());
}

void kill_children(pid_t spared) {
  constexpr std::chrono::seconds kGone{2};  // SIGKILL needs a moment
  const auto deadline = std::chrono::steady_clock::now() + kGone;
  const auto are_there = [&] {
    const auto children = children_of(getpid());
    return std::any_of(children.begin(), children.end(),
                       [&](const ProcessId& child) { return child.pid != spared; });
  };
  for (signal_children_of(getpid(), SIGKILL, spared);
       are_there() && std::chrono::steady_clock::now() < deadline;) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
    poll(nullptr, 0, 10);
  }
}

namespace {

std::vector<ProcessId> ranks_below(pid_t mpirun) {
  auto ranks = children_of(mpirun);
  std::erase_if(ranks, [](const ProcessId& child) {
    const std::string variables = contents_of("/proc/" + std::to_string(child.pid) + "/environ");
    return variables.find("OMPI_COMM_WORLD_RANK=") == std::string::npos;
  });
  return ranks;
}

}  // namespace

int count_ranks_below(pid_t mpirun) { return static_cast<int>(ranks_below(mpirun).size()); }

int signal_ranks_below(pid_t mpirun, int signal) {
  const auto ranks = ranks_below(mpirun);
  for (const ProcessId& rank : ranks) kill(rank.pid, signal);
  return static_cast<int>(ranks.size());
}

namespace {

bool is_ignored(int number) {
  struct sigaction action = {};
  return sigaction(number, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
         action.sa_handler == SIG_IGN;
}

}  // namespace

SignalQueue::SignalQueue() {
  sigset_t taken;
  sigemptyset(&taken);
  // Linux hands a blocked signal to signalfd even where it is ignored: an ignored one must not be in the set.
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
    if (!is_ignored(number)) sigaddset(&taken, number);
  sigaddset(&taken, SIGCHLD);
  sigprocmask(SIG_BLOCK, &taken, &before_);
  pipe_before_ = signal(SIGPIPE, SIG_IGN);
  fd_ = OwnedFd(signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
  if (fd_.get() < 0) throw ResourceExhaustedError("cannot wait for signals: {}", std::strerror(errno));
}

void SignalQueue::give_back() {
  signal(SIGPIPE, pipe_before_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalQueue::next() {
  signalfd_siginfo info;
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kToEnd{3};
constexpr size_t kMostCaptured = size_t{16} << 20;

// It stays a zombie, so that no other process or group can have its number meanwhile.
bool has_ended(pid_t pid) {
  siginfo_t info = {};
  return waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

// Waits for the end of `child`; true if it ended by itself with code 0. By force SIGTERM goes to it alone:
// mpirun, as one, has the ranks of other hosts to end. What is left of its group is killed.
bool end_child(Child& child, bool by_force) {
  if (by_force) kill(child.pid, SIGTERM);
  const auto deadline = Clock::now() + kToEnd;
  while (!has_ended(child.pid)) {
    if (Clock::now() > deadline) kill(-child.pid, SIGKILL);
    poll(nullptr, 0, 10);
  }
  if (by_force) kill(-child.pid, SIGKILL);
  return detail::code_of_child(child.pid, true) == 0 && !by_force;
}

// False at the end of the stream.
bool read_into(const OwnedFd& fd, std::string& text) {
  char bytes[4096];
  ssize_t count = 0;
  while (text.size() < kMostCaptured && (count = read(fd.get(), bytes, sizeof bytes)) > 0)
    text.append(bytes, count);
  return count != 0;
}

}  // namespace

CapturedRun run_captured(const std::vector<std::string>& command, std::chrono::seconds limit,
                         SignalQueue* signals) {
  CapturedRun run;
  Child child = start_child(command);
  const auto deadline = Clock::now() + limit;
  std::optional<int> stopped_by;
  const auto is_too_long = [&] { return run.out.size() + run.err.size() >= kMostCaptured; };
  for (bool open = true; open && !stopped_by && !is_too_long() && Clock::now() < deadline;) {
    pollfd fds[] = {{child.out.get(), POLLIN, 0},
                    {child.err.get(), POLLIN, 0},
                    {signals == nullptr ? -1 : signals->fd(), POLLIN, 0}};
    poll(fds, 3,
         static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count()));
    while (const auto number = signals == nullptr ? std::nullopt : signals->next())
      if (*number != SIGCHLD) stopped_by = number;
    if (child.err.get() >= 0 && !read_into(child.err, run.err)) child.err = OwnedFd();
    open = read_into(child.out, run.out);
  }
  const bool in_time = Clock::now() < deadline;
  run.good = end_child(child, stopped_by || is_too_long() || !in_time);
  if (!run.good) run.why = "it failed";
  if (is_too_long()) run.why = fmt::format("it printed over {} MiB", kMostCaptured >> 20);
  else if (!in_time) run.why = fmt::format("it did not end within {} s", limit.count());
  if (child.err.get() >= 0) read_into(child.err, run.err);
  run.is_stopped = stopped_by.has_value();
  if (stopped_by) kill(getpid(), *stopped_by);
  return run;
}

std::optional<std::string> ask_program(const std::vector<std::string>& command) {
  constexpr std::chrono::seconds kLongestAnswer{5};
  try {
    const CapturedRun run = run_captured(command, kLongestAnswer, nullptr);
    return run.good ? std::optional(run.out) : std::nullopt;
  } catch (const NotFoundError&) {
    return std::nullopt;
  }
}

}  // namespace kolo::launcher
