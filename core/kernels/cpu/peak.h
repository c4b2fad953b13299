// What one core of this machine can do: what the times of kernels are held against.
#pragma once

namespace kolo {

struct CorePeak {
  double gflops = 0;  // f32 multiplications and additions, all of them fused
  double GBps = 0;    // read and written by a = b + s · c on arrays far larger than caches
};

/// The best of many short runs in about `seconds`. This thread alone computes; takes 384 MiB meanwhile.
CorePeak measure_peak(double seconds);

}  // namespace kolo
