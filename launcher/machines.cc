#include <kolo/launcher/machines.h>

#include <algorithm>
#include <chrono>

#include <kolo/launcher/child.h>
#include <kolo/launcher/output.h>

namespace kolo::launcher {
namespace {

constexpr std::chrono::seconds kLongestProbe{15};

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

}  // namespace

std::vector<int> number_machines(std::string_view tagged_lines, int hosts) {
  std::vector<std::string> boot_ids(hosts);
  TagSplitter splitter;
  std::vector<LineCutter> cutters(hosts);
  splitter.feed(tagged_lines, [&](int host, std::string_view bytes) {
    if (host < 0 || host >= hosts) return;
    cutters[host].feed(bytes, [&](const LineCutter::Piece& piece) { boot_ids[host] = piece.line; });
  });
  std::vector<int> machines;
  for (const std::string& id : boot_ids) {
    if (id.empty()) return {};
    machines.push_back(static_cast<int>(std::find(boot_ids.begin(), boot_ids.end(), id) - boot_ids.begin()));
  }
  return machines;
}

bool needs_machines(const Options& options, const Surroundings& found) {
  return options.launcher == Launcher::mpirun && options.bind == Bind::automatic &&
         options.hosts.size() > 1 && !all_ranks_here(options, found);
}

std::vector<int> find_machines(const Options& options, const Surroundings& found, SignalQueue& signals) {
  const CapturedRun run = run_captured(compose_probe(options, found), kLongestProbe, &signals);
  return run.good ? number_machines(run.out, static_cast<int>(options.hosts.size())) : std::vector<int>{};
}

}  // namespace kolo::launcher
