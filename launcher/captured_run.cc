#include <kolo/launcher/captured_run.h>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include <kolo/launcher/child.h>

namespace kolo::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kToEnd{3};

// Waits for the end of `child`; true if it ended by itself with code 0.
bool end_child(Child& child, bool by_force) {
  int status = 0;
  if (by_force) kill(child.pid, SIGTERM);
  const auto deadline = Clock::now() + kToEnd;
  while (waitpid(child.pid, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) kill(-child.pid, SIGKILL);
    poll(nullptr, 0, 10);
  }
  return !by_force && shell_code(status) == 0;
}

// False at the end of the stream.
bool read_into(const OwnedFd& fd, std::string& text) {
  char bytes[4096];
  ssize_t count = 0;
  while ((count = read(fd.get(), bytes, sizeof bytes)) > 0) text.append(bytes, count);
  return count != 0;
}

}  // namespace

CapturedRun run_captured(const std::vector<std::string>& command, std::chrono::seconds limit,
                         SignalQueue& signals) {
  CapturedRun run;
  Child child = start_child(command);
  const auto deadline = Clock::now() + limit;
  std::optional<int> stopped_by;
  for (bool open = true; open && !stopped_by && Clock::now() < deadline;) {
    pollfd fds[] = {{child.out.get(), POLLIN, 0}, {child.err.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    poll(fds, 3,
         static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count()));
    while (const auto number = signals.next())
      if (*number != SIGCHLD) stopped_by = number;
    if (child.err.get() >= 0 && !read_into(child.err, run.err)) child.err = OwnedFd();
    open = read_into(child.out, run.out);
  }
  const bool in_time = !stopped_by && Clock::now() < deadline;
  run.good = end_child(child, !in_time);
  if (child.err.get() >= 0) read_into(child.err, run.err);
  if (stopped_by) kill(getpid(), *stopped_by);
  return run;
}

}  // namespace kolo::launcher
