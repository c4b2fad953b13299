// Which allreduce "auto" stands for.
#pragma once

#include <cstdint>
#include <string>

#include <kolo/collectives/algorithms/cost_model.h>
#include <kolo/collectives/reduce/reduce_op.h>
#include <kolo/collectives/transport/topology.h>

namespace kolo {

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
