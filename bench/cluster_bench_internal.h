// What the parts of kolo-bench cluster share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <bench/cluster_bench.h>
#include <kolo/core/cluster/cluster_spec.h>

namespace kolo::bench {

ClusterSpec cluster_of(const ClusterBenchOptions& options);
/// This process is a worker: trains; prints a line `warm`, and its times as one JSON object.
void train_as_worker(const ClusterBenchOptions& options, bool sync);
/// Starts servers and workers for each number of them, and prints a row for each.
void training_table(const ClusterBenchOptions& options, bool sync);

}  // namespace kolo::bench
