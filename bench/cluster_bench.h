// kolo-bench cluster: what a step costs whose parts lie on several tasks, and training on parameter servers.
#pragma once

#include <string>
#include <vector>

namespace kolo::bench {

struct ClusterBenchOptions {
  std::vector<std::string> what = {"calls", "transfers"};  // also: exchange, async, sync
  /// As kolo-server's --cluster, with this process as task `task` of job worker; its servers run elsewhere.
  /// "": parameter servers, and with async and sync workers, are started on this machine, and ended.
  std::string cluster;
  int task = 0;
  std::vector<int> workers = {1, 2, 4};  // of async and sync, on this machine
  std::vector<int> servers = {1, 2};     // likewise
  std::string model = "lenet";
  int steps = 40;      // of async and sync, for each worker, after warming up
  int threads = 1;     // that compute, in a worker
  double seconds = 1;  // for each row of calls, transfers and exchange
  bool json = false;
};

/// Prints rows. Throws UnimplementedError where kolo was built without gRPC.
void cluster_bench(const ClusterBenchOptions& options);

}  // namespace kolo::bench
