#include <kolo/launcher/cluster_tasks.h>

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/free_ports.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/text.h>

namespace kolo::launcher {
namespace {

using nlohmann::json;

constexpr int kMostTasks = 1 << 20;

bool is_job_name(std::string_view name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), fits);
}

std::string address(const std::string& host, int port) {
  const bool is_v6 = host.find(':') != std::string::npos && host[0] != '[';
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

// Whose tasks end by themselves; those of other jobs serve until these have ended.
bool is_worker(const std::string& job) { return job == "chief" || job == "master" || job == "worker"; }

}  // namespace

ClusterJobs parse_cluster(std::string_view text) {
  ClusterJobs jobs;
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgumentError("--cluster \"{}\" is not valid: {}; it is written as in ps=1,worker=3", text,
                               why);
  };
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string entry(text.substr(start, end - start));
    start = end + 1;
    const std::size_t equals = entry.find('=');
    const std::string job = entry.substr(0, equals);
    const std::int64_t count =
        equals == std::string::npos ? 0 : parse_int64(entry.substr(equals + 1)).value_or(0);
    if (!is_job_name(job)) refuse(fmt::format("\"{}\" names no job", entry));
    if (count < 1 || count > kMostTasks)
      refuse(fmt::format("\"{}\" has no number of tasks from 1 to {}", entry, kMostTasks));
    for (const auto& [known, tasks] : jobs)
      if (known == job) refuse(fmt::format("job \"{}\" is named twice", job));
    jobs.emplace_back(job, static_cast<int>(count));
  }
  return jobs;
}

int total_tasks(const ClusterJobs& jobs) {
  int total = 0;
  for (const auto& [job, tasks] : jobs) total += tasks;
  return total;
}

std::vector<std::string> free_local_addresses(int count) {
  const FreePorts ports(count);
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back(address("127.0.0.1", ports[i]));
  return all;
}

std::vector<std::string> addresses_on(const std::vector<Host>& hosts, int ranks, int first_port) {
  const std::vector<int> counts = ranks_per_host(hosts, ranks);
  std::vector<std::string> all;
  for (std::size_t host = 0; host < counts.size(); ++host)
    for (int i = 0; i < counts[host]; ++i) all.push_back(address(hosts[host].name, first_port + i));
  return all;
}

std::vector<std::string> program_of_tasks(const ClusterJobs& jobs, const std::vector<std::string>& addresses,
                                          const std::vector<std::string>& program) {
  json cluster = json::object();
  std::string ranks;
  std::size_t rank = 0;
  for (const auto& [job, tasks] : jobs)
    for (int index = 0; index < tasks; ++index, ++rank) {
      cluster[job].push_back(addresses[rank]);
      ranks += fmt::format("{}) task='{}'{};; ", rank, json_text(json{{"type", job}, {"index", index}}),
                           is_worker(job) ? "" : " KOLO_END_WITH_WORKERS=1; export KOLO_END_WITH_WORKERS");
    }
  // Which rank it is mpirun, or hydra, tells each process alone, in its environment.
  const std::string script = fmt::format(
      "case ${{OMPI_COMM_WORLD_RANK-$PMI_RANK}} in {}esac; "
      "KOLO_CLUSTER='{{\"cluster\":{},\"task\":'\"$task\"'}}'; "
      "export KOLO_CLUSTER; exec \"$@\"",
      ranks, json_text(cluster));
  std::vector<std::string> words = {"sh", "-c", script, "kolorun"};
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

}  // namespace kolo::launcher
