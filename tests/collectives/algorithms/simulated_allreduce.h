// An allreduce over simulated ranks, each with an array of its own.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <tests/collectives/algorithms/simulated_network.h>

namespace kolo {

template <typename T>
using Arrays = std::vector<std::vector<T>>;  // one for each rank

struct SimulatedAllreduce {
  std::string algorithm;
  ReduceOp op = ReduceOp::sum;
  std::int64_t chunk_bytes = 64;
  bool f32_wire = false;
  double average_over = 0;
  int turns = 1;  // one after the other, on the results of the one before

  /// Gives the number of messages of one turn.
  template <typename T>
  std::int64_t run(Arrays<T>& arrays, const Topology& topology) const {
    SimulatedNetwork network(topology, 7);
    std::vector<std::shared_ptr<Collective>> operations;
    for (int rank = 0; rank < network.size(); ++rank) {
      AlgorithmContext context = network.context(rank, chunk_bytes);
      context.f32_wire = f32_wire;
      context.average_over = average_over;
      operations.push_back(
          make_allreduce(algorithm, context, TypedBuffer::of(std::span<T>(arrays[rank])), op));
    }
    for (int turn = 0; turn < turns; ++turn) network.run(operations);
    return network.messages() / turns;
  }
  template <typename T>
  std::int64_t run(Arrays<T>& arrays) const {
    return run(arrays, Topology::one_node(static_cast<int>(arrays.size())));
  }
};

}  // namespace kolo
