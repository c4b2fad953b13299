// kolo-bench keras: what a model's fit costs beside the same step without it.
#pragma once

namespace kolo::bench {

struct KerasBenchOptions {
  int threads = 0;     // as kolo-train's --threads
  double seconds = 8;  // for each network, after warming up
  bool json = false;
};

/// Steps of Keras' network for digits (batch 128) and of one Dense(10) (batch 1), in turns: through fit, as a
/// callable of the same graph, and in a monitored session as kolo-train runs one. Prints a row for each
/// network and way: median and minimum over the turns of the time for a step, and the memory of the step. All
/// ranks call it together; rank 0 prints.
void keras_bench(const KerasBenchOptions& options);

}  // namespace kolo::bench
