// kolo-bench peak: what the other figures are to be held against.
#pragma once

namespace kolo::bench {

struct PeakBenchOptions {
  double seconds = 1;
  bool json = false;
};

/// Prints the peak of the core that rank 0 runs on, and the instruction set.
void peak_bench(const PeakBenchOptions& options);

}  // namespace kolo::bench
