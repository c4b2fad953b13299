// kolo-bench kernels: kolo's own CPU kernels beside the library's, in the steps of models.
#pragma once

#include <string>
#include <vector>

namespace kolo::bench {

struct KernelsBenchOptions {
  std::vector<std::string> models;
  int threads = 1;
  double seconds = 8;  // for each model
  bool json = false;
};

/// Trains each model with kolo's own kernels, with the library's and, where the processor computes in it, in
/// bf16, a step of each by turns. Prints for each model the median step of each way, and for each own kernel
/// the sum of its nodes' median times beside the library's for the same nodes: scripts/make_kernel_table
/// makes the table of own_kernels.h from such rows. Nodes that only one way has, since an own kernel takes an
/// addition with it, count with the own kernel that has most of the step. On one rank.
void kernels_bench(const KernelsBenchOptions& options);

}  // namespace kolo::bench
