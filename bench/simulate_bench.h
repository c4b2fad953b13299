// kolo-bench simulate: how data-parallel training would scale, by the cost model alone. Nothing is measured.
#pragma once

#include <string>

#include <kolo/collectives/algorithms/cost_model.h>
#include <kolo/collectives/transport/topology.h>

namespace kolo::bench {

/// One rank is one accelerator. step_s: forward and backward pass of its batch.
struct SimulatedModel {
  const char* name;
  double parameters;
  int bytes_per_parameter;  // of a gradient
  int batch;                // samples or, for GPT, tokens of a rank
  double step_s;
  int buckets;  // of kolo's schedule, which closes one at 1 MiB; a larger gradient is one by itself
};

/// Eight ranks of a node share its link; or the job is one domain, with the links of a node's inside.
struct SimulatedNetwork {
  const char* name;
  CostModel costs;
  bool one_domain;

  Topology topology(int ranks) const;
};

struct Prediction {
  std::string algorithm;
  double allreduce_s = 0;  // of all gradients
  double step_s = 0, overlapped_step_s = 0;
};

/// Gradients travel in as many buckets as the model has, of equal size, one after the other. They become
/// complete evenly over the backward pass, two thirds of the step; the last one has no computation
/// left to hide behind.
Prediction predict(const SimulatedModel& model, const SimulatedNetwork& network, int ranks);

struct SimulateBenchOptions {
  bool json = false;
};

/// Prints, for models of 25.6 million to 1.3 billion parameters on 8 … 4,096 ranks, the predicted scaling
/// efficiency: time of a step without communication ÷ time with it, where communication overlaps with the
/// backward pass and where it does not. Links, times of a step and their sources stand in
/// docs/collectives.md.
void simulate_bench(const SimulateBenchOptions& options);

}  // namespace kolo::bench
