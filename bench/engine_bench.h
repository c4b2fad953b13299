// kolo-bench engine: many small tensors through the engine, with and without fusion.
#pragma once

#include <cstdint>

namespace kolo::bench {

struct EngineBenchOptions {
  int tensors = 1000;
  std::int64_t bytes = 1024;  // of each; a multiple of 4
  int steps = 50;             // of each kind, after warming up
  bool json = false;
};

/// In every step each rank submits all tensors (f32, sum) in an order of its own and waits for them; steps
/// with fusion, without, and with one MPI_Allreduce after the other in one order instead come in turns.
/// Checks every result. Rank 0 prints a row for each: median and least time of a step, that of the
/// submission, tensors a second, and negotiation messages that it sent in a step. Throws InvalidArgumentError
/// with one rank.
void engine_bench(const EngineBenchOptions& options);

}  // namespace kolo::bench
