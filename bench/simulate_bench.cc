#include <bench/simulate_bench.h>

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <kolo/collectives/algorithms/cost_model.h>
#include <kolo/core/base/json_text.h>

namespace kolo::bench {
namespace {

constexpr int kRanksPerNode = 8;

// Times of a step from published measurements that docs/collectives.md names: a P100 for the CNNs, an A100
// for GPT.
constexpr SimulatedModel kModels[] = {
    {"ResNet-50", 25.6e6, 4, 64, 64 / 219.0, 35},
    {"VGG-16", 138e6, 4, 64, 64 / 154.0, 13},
    {"GPT 1.3B", 1.3e9, 2, 8192, 6 * 1.3e9 * 8192 / 137e12,
     98},  // 24 layers of four matrices, two embeddings
};

// A node is NVLink inside; nodes are joined by one link of 100 Gbit/s each, or the job is one NVLink domain.
const LinkCost kNvlink{5e-6, 1 / 120e9};
const LinkCost kHundredGigabit{10e-6, 1 / 11e9};
const SimulatedNetwork kNetworks[] = {
    {"100 Gbit/s",
     {.inside = kNvlink, .between = kHundredGigabit, .seconds_per_reduced_byte = 1 / 300e9},
     false},
    {"NVLink", {.inside = kNvlink, .between = kHundredGigabit, .seconds_per_reduced_byte = 1 / 300e9}, true},
};

}  // namespace

Topology SimulatedNetwork::topology(int ranks) const {
  if (one_domain) return Topology::one_node(ranks);
  std::vector<int> leaders(ranks);
  for (int rank = 0; rank < ranks; ++rank) leaders[rank] = rank - rank % kRanksPerNode;
  return Topology(leaders);
}

Prediction predict(const SimulatedModel& model, const SimulatedNetwork& network, int ranks) {
  const Topology topology = network.topology(ranks);
  const double bytes = model.parameters * model.bytes_per_parameter;
  const int buckets = model.buckets;
  const auto bucket_bytes = static_cast<std::int64_t>(bytes / buckets);
  Prediction prediction;
  prediction.algorithm = fastest_allreduce(network.costs, topology, bucket_bytes);
  const double bucket_s = predicted_seconds(network.costs, prediction.algorithm, topology, bucket_bytes);
  prediction.allreduce_s = bucket_s * buckets;
  prediction.step_s = model.step_s + prediction.allreduce_s;
  double free_at = 0;
  for (int bucket = 1; bucket <= buckets; ++bucket)
    free_at = std::max(free_at, model.step_s / 3 + model.step_s * 2 / 3 * bucket / buckets) + bucket_s;
  prediction.overlapped_step_s = free_at;
  return prediction;
}

void simulate_bench(const SimulateBenchOptions& options) {
  if (!options.json)
    fmt::print(
        "Simulated by the cost model, not measured; {} ranks per node.\n"
        "{:<10} {:<10} {:>5}  {:<18} {:>12}  {:>16} {:>14}\n",
        kRanksPerNode, "model", "network", "ranks", "algorithm", "allreduce ms", "without overlap",
        "with overlap");
  for (const SimulatedModel& model : kModels)
    for (const SimulatedNetwork& network : kNetworks)
      for (int ranks = 8; ranks <= 4096; ranks *= 2) {
        const Prediction prediction = predict(model, network, ranks);
        const double plain = model.step_s / prediction.step_s;
        const double overlapped = model.step_s / prediction.overlapped_step_s;
        if (options.json)
          fmt::print("{}\n", json_text(nlohmann::ordered_json{{"simulated", true},
                                                              {"model", model.name},
                                                              {"network", network.name},
                                                              {"ranks", ranks},
                                                              {"algorithm", prediction.algorithm},
                                                              {"compute_ms", model.step_s * 1e3},
                                                              {"allreduce_ms", prediction.allreduce_s * 1e3},
                                                              {"efficiency", plain},
                                                              {"overlapped_efficiency", overlapped}}));
        else
          fmt::print("{:<10} {:<10} {:>5}  {:<18} {:>12.2f}  {:>15.1f}% {:>13.1f}%\n", model.name,
                     network.name, ranks, prediction.algorithm, prediction.allreduce_s * 1e3, plain * 100,
                     overlapped * 100);
      }
}

}  // namespace kolo::bench
