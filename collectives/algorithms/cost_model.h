// How long an allreduce would take: what the choice of an algorithm and simulations of large jobs go by.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/collectives/reduce/reduction.h>
#include <kolo/collectives/transport/topology.h>

namespace kolo {

/// A message of n bytes takes latency_s + n · seconds_per_byte; a link carries as many bytes in each
/// direction at the same time (the α–β model, Thakur, Rabenseifner and Gropp, 2005).
struct LinkCost {
  double latency_s = 0;
  double seconds_per_byte = 0;
  bool operator==(const LinkCost&) const = default;
};

/// The defaults are round figures of servers with 10 Gbit/s Ethernet; being the same everywhere they make the
/// same choice in every run.
struct CostModel {
  LinkCost inside{3e-6, 1 / 3e9};             // of two ranks of a node, over messages
  LinkCost between{30e-6, 1 / 1.1e9};         // of two nodes: their ranks share the link
  double seconds_per_reduced_byte = 1 / 6e9;  // two operands of so many bytes become one
  bool operator==(const CostModel&) const = default;

  /// One object: `{"inside": {"latency_us": 3, "GBps": 3}, "between": {…}, "reduce_GBps": 6}`.
  std::string to_json() const;
  /// Other members are left alone. Throws InvalidArgumentError that names what is missing or not above 0.
  static CostModel from_json(const std::string& text);
};

/// Of the algorithms over messages: "ring", "halving_doubling", "recursive_doubling", "tree", "hierarchical".
/// An allreduce of so many bytes in seconds, where nobody waits for a late rank.
/// Throws InvalidArgumentError for another name. Cost: in proportion to the number of ranks.
double predicted_seconds(const CostModel& model, const std::string& algorithm, const Topology& topology,
                         std::int64_t bytes);

/// The algorithm with the least predicted time; of equal ones the first by name.
std::string fastest_allreduce(const CostModel& model, const Topology& topology, std::int64_t bytes);

/// What is known of an allreduce before it is made, the same on all ranks.
struct AllreduceCase {
  const Topology& topology;
  bool shares_memory = false;  // all ranks see each other's node memory
  std::int64_t bytes = 0;
  ReduceOp op = ReduceOp::sum;
};

/// One of allreduce_names(); depends on nothing but the case and the costs. In shared memory always that,
/// else what is predicted to be fastest.
std::string choose_allreduce(const AllreduceCase& which, const CostModel& costs = {});

}  // namespace kolo
