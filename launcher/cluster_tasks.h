// kolorun --cluster: which task each rank is, and how it is told.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kolo/launcher/hosts.h>

namespace kolo::launcher {

/// Jobs of a cluster, each with its number of tasks, in the order of the ranks.
using ClusterJobs = std::vector<std::pair<std::string, int>>;

/// `ps=1,worker=3`. Throws InvalidArgumentError for what is no job or number, and a job that is named twice.
ClusterJobs parse_cluster(std::string_view text);
int total_tasks(const ClusterJobs& jobs);

/// Of loopback, with ports that are free now. Throws UnavailableError where there are none.
std::vector<std::string> free_local_addresses(int count);
/// By rank: its host, and first_port + its number there.
std::vector<std::string> addresses_on(const std::vector<Host>& hosts, int ranks, int first_port);

/// `program` as a shell starts it on each rank, with KOLO_CLUSTER as that rank's task finds it. addresses: by
/// rank.
std::vector<std::string> program_of_tasks(const ClusterJobs& jobs, const std::vector<std::string>& addresses,
                                          const std::vector<std::string>& program);

}  // namespace kolo::launcher
