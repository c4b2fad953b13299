// kolo-bench ops: single ops at the shapes that the model zoo has, forward and backward apart.
#pragma once

namespace kolo::bench {

struct OpsBenchOptions {
  int threads = 0;     // as kolo-train's --threads
  double seconds = 1;  // for each op, after warming up
  bool json = false;
};

/// Prints for each op and pass a row: the median and least time of its kernels, and what it did in that time
/// beside what one core can (measured first): multiplications and additions of the definition, bytes of the
/// tensors read and written, each once. Rank 0 alone measures.
void ops_bench(const OpsBenchOptions& options);

}  // namespace kolo::bench
