// kolo-bench simulate: how data-parallel training would scale, by the cost model alone. Nothing is measured.
#pragma once

namespace kolo::bench {

struct SimulateBenchOptions {
  bool json = false;
};

/// Prints, for models of 25.6 million to 1.3 billion parameters on 8 … 4,096 ranks, the predicted scaling
/// efficiency: time of a step without communication ÷ time with it, where communication overlaps with the
/// backward pass and where it does not. Links, times of a step and their sources stand in
/// docs/collectives.md.
void simulate_bench(const SimulateBenchOptions& options);

}  // namespace kolo::bench
