// What the executor costs for each node of a step, on graphs whose nodes do next to nothing.
#pragma once

#include <vector>

namespace kolo::bench {

struct ExecutorBenchOptions {
  int nodes = 10000;                  // of each graph
  std::vector<int> threads = {1, 2};  // that run nodes, in turns
  double seconds = 2;                 // for each row, after warming up
  bool json = false;
};

/// A chain, in which each node waits for the one before it, and a wide graph, in which all wait for one node
/// and one for all; the latter with nodes of no work and of 20 µs. Prints a row for each graph, work and
/// number of threads: the median over steps of the time for each node, the time that compiling took, and what
/// the machine itself takes for an atomic decrement and an indirect call of the same kernel. Throws
/// InternalError if a step's result is wrong.
void executor_bench(const ExecutorBenchOptions& options);

}  // namespace kolo::bench
