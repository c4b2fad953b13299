#include <kolo/launcher/slurm_job.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

#include <kolo/core/base/stop_time.h>
#include <kolo/core/base/text.h>
#include <kolo/launcher/host_lists.h>

namespace kolo::launcher {
namespace {

constexpr int kUsualPort = 6818;
constexpr std::chrono::seconds kAMoment{60};  // in which the ranks have saved and ended

int valid_port(std::string_view text) {
  constexpr int kLastPort = 65535;
  const auto port = parse_int64(text);
  return port && *port > 0 && *port <= kLastPort ? static_cast<int>(*port) : 0;
}

// `SlurmdPort              = 6818`.
int port_in(const std::string& configuration) {
  std::istringstream lines(configuration);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, equals, value;
    words >> name >> equals >> value;
    if (name == "SlurmdPort" && equals == "=") return valid_port(value);
  }
  return 0;
}

// A line `NodeName=a … NodeAddr=10.0.0.1 … Port=6819 …`.
std::pair<std::string, DaemonPlace> place_in(const std::string& record) {
  std::string name;
  DaemonPlace place;
  std::istringstream words(record);
  for (std::string word; words >> word;) {
    const size_t equals = std::min(word.find('='), word.size());
    const std::string_view key = std::string_view(word).substr(0, equals);
    const std::string value = word.substr(std::min(equals + 1, word.size()));
    if (key == "NodeName") name = value;
    if (key == "NodeAddr") place.name = value;
    if (key == "Port") place.port = valid_port(value);
  }
  return {name, place};
}

}  // namespace

Agent SlurmJob::agent(const std::vector<Host>& hosts) const {
  Agent agent;
  agent.port = port_in(ask_({"scontrol", "show", "config"}).value_or(""));
  if (agent.port == 0) agent.port = kUsualPort;
  std::istringstream records(ask_({"scontrol", "show", "node", "-o", names_of(hosts, ",")}).value_or(""));
  for (std::string record; std::getline(records, record);) {
    auto [name, place] = place_in(record);
    if (place.port == 0) place.port = agent.port;
    if (!name.empty() && !place.name.empty()) agent.daemons[name] = place;
  }
  return agent;
}

std::optional<std::vector<Host>> SlurmJob::hosts() const {
  const auto said = ask_({"squeue", "-h", "-o", "%N", "-j", job_});
  if (!said) return std::nullopt;
  std::vector<Host> hosts;
  for (const std::string& name : expand_host_list(std::string_view(*said).substr(0, said->find('\n'))))
    hosts.push_back({name});
  return hosts.empty() ? std::nullopt : std::optional(hosts);
}

// Slurm says NodeDown of a job that it does not queue again. Of one that it does, the node tells: it counts
// as down since a moment ago.
bool SlurmJob::is_ended_by(const std::vector<std::string>& lost) const {
  if (lost.empty()) return false;
  const std::string job = ask_({"scontrol", "show", "job", job_}).value_or("");
  if (job.find("Reason=NodeDown") != std::string::npos) return true;
  if (word_after(job, "Restarts=") == std::to_string(restarts_)) return false;
  std::istringstream nodes(
      ask_({"sinfo", "-h", "-N", "-n", fmt::format("{}", fmt::join(lost, ",")), "-o", "%T %H"}).value_or(""));
  for (std::string state, since; nodes >> state >> since;) {
    const auto time = detail::parse_slurm_time(since);
    if (state.starts_with("down") && time && std::chrono::system_clock::now() - *time < kAMoment) return true;
  }
  return false;
}

}  // namespace kolo::launcher
