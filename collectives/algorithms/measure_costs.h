// Measures what the cost model goes by on the links of this job.
#pragma once

#include <cstdint>

#include <kolo/collectives/algorithms/cost_model.h>
#include <kolo/collectives/transport/point_to_point.h>
#include <kolo/collectives/transport/topology.h>

namespace kolo {

struct MeasuredLink {
  LinkCost cost;
  std::int64_t sent_bytes = 0;  // by this side, in long messages
};

/// Two ranks call it at the same time, each with the other's number and one of them with `leads`; that one's
/// result counts. Latency is half of the shortest round trip; bytes go in both directions at once, as in the
/// algorithms. Takes about 0.15 s; over a slow link up to 2 s and the time of a message. Throws
/// DeadlineExceededError where the other rank does not answer for 30 s.
MeasuredLink measure_link(PointToPoint& network, int peer, bool leads);

/// Seconds for each byte of a sum of f32 on this rank.
double measure_reduction();

/// All ranks call it, and wait in it for about a third of a second; all get the same. Rank 0 measures its
/// link to the next rank of its node, and to the lowest rank of the next node; where there is none, the
/// default constants stay. How fast it reduces is measured on rank 0 alone. Throws as measure_link().
CostModel measure_costs(PointToPoint& network, const Topology& topology);

}  // namespace kolo
