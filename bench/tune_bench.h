// kolo-bench tune: the costs of this job's links.
#pragma once

#include <string>
#include <vector>

#include <kolo/collectives/algorithms/cost_model.h>

namespace kolo::bench {

struct TuneBenchOptions {
  std::string output;  // a file that KOLO_AUTOTUNE can name; "": standard output
};

/// What the file holds: costs.to_json() and, for readers, "hosts" by rank. CostModel::from_json reads it.
std::string cost_table(const CostModel& costs, const std::vector<std::string>& hosts, int indent = -1);

/// Measures the constants of the cost model (measure_costs) and writes them as JSON together with the hosts
/// they hold for. On all ranks; rank 0 writes. Throws InvalidArgumentError with one rank, and
/// UnavailableError if the file cannot be written.
void tune_bench(const TuneBenchOptions& options);

}  // namespace kolo::bench
