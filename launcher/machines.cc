#include <kolo/launcher/machines.h>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include <kolo/launcher/child.h>
#include <kolo/launcher/rank_lines.h>

namespace kolo::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLongest{15};
constexpr std::chrono::seconds kToEnd{3};

// One application context for each host, so that rank h is host h; mpirun sorts a plain --host list in its
// own way.
std::vector<std::string> compose_probe(const Options& options, const Surroundings& found) {
  Options probe = options;
  probe.ranks = 1;
  probe.bind = Bind::none;
  probe.exported.clear();
  probe.program = {"cat", "/proc/sys/kernel/random/boot_id"};
  probe.hosts = {{options.hosts[0].name, 1}};
  std::vector<std::string> command = compose_mpirun(probe, found, true);
  for (size_t host = 1; host < options.hosts.size(); ++host) {
    command.insert(command.end(), {":", "--host", options.hosts[host].name + ":1", "-n", "1"});
    command.insert(command.end(), probe.program.begin(), probe.program.end());
  }
  return command;
}

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

}  // namespace

std::vector<int> number_machines(std::string_view tagged_lines, int hosts) {
  std::vector<std::string> boot_ids(hosts);
  TagSplitter splitter;
  std::vector<LineCutter> cutters(hosts);
  splitter.feed(tagged_lines, [&](int host, std::string_view bytes) {
    if (host < 0 || host >= hosts) return;
    cutters[host].feed(bytes, [&](std::string_view line) { boot_ids[host] = line; });
  });
  std::vector<int> machines;
  for (const std::string& id : boot_ids) {
    if (id.empty()) return {};
    machines.push_back(static_cast<int>(std::find(boot_ids.begin(), boot_ids.end(), id) - boot_ids.begin()));
  }
  return machines;
}

std::vector<int> find_machines(const Options& options, const Surroundings& found, SignalQueue& signals) {
  Child child = start_child(compose_probe(options, found));
  const auto deadline = Clock::now() + kLongest;
  std::string lines;
  std::optional<int> stopped_by;
  for (bool open = true; open && !stopped_by && Clock::now() < deadline;) {
    pollfd fds[] = {{child.out.get(), POLLIN, 0}, {child.err.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    poll(fds, 3,
         static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count()));
    while (const auto number = signals.next())
      if (*number != SIGCHLD) stopped_by = number;
    char bytes[4096];
    ssize_t count = 0;
    while ((count = read(child.err.get(), bytes, sizeof bytes)) > 0) continue;  // the job will say it again
    while ((count = read(child.out.get(), bytes, sizeof bytes)) > 0) lines.append(bytes, count);
    open = count != 0;
  }
  const bool in_time = !stopped_by && Clock::now() < deadline;
  const bool good = end_child(child, !in_time);
  if (stopped_by) kill(getpid(), *stopped_by);  // comes back through `signals`, for the job to see
  return good ? number_machines(lines, static_cast<int>(options.hosts.size())) : std::vector<int>{};
}

}  // namespace kolo::launcher
