// kolo-bench peak: what the other figures are to be held against.
#pragma once

namespace kolo::bench {

/// Of one core.
struct Peak {
  double gflops = 0;  // f32 multiplications and additions, all of them fused
  double GBps = 0;    // read and written by a = b + s · c on arrays far larger than caches
};

/// The best of many short runs in about `seconds`. This thread alone computes.
Peak measure_peak(double seconds);

struct PeakBenchOptions {
  double seconds = 1;
  bool json = false;
};

/// Prints the peak of the core that rank 0 runs on, and the instruction set.
void peak_bench(const PeakBenchOptions& options);

}  // namespace kolo::bench
