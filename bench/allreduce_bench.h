// kolo-bench allreduce: kolo's reductions and MPI's own, in turns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kolo::bench {

struct AllreduceBenchOptions {
  std::vector<std::int64_t> sizes;  // bytes; multiples of 4
  std::string buffers =
      "bucket";       // "bucket": memory as a schedule's buckets have it; "user": ordinary memory
  std::string costs;  // a file of `kolo-bench tune`: rows of kolo also say what the cost model predicts
  bool json = false;
};

/// Sums f32 in place over all ranks, with the algorithm that init() found (KOLO_ALLREDUCE) and with
/// MPI_Allreduce, call by call in turns, and checks both results. Rank 0 prints two rows for each size:
/// median and least time, bytes ÷ time, and the bandwidth that a ring needs for it, 2(n−1)/n · bytes ÷ time.
/// Throws InvalidArgumentError with one rank.
void allreduce_bench(const AllreduceBenchOptions& options);

}  // namespace kolo::bench
