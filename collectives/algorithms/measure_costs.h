// The constants of the cost model, measured on the ranks at hand.
#pragma once

#include <kolo/collectives/algorithms/cost_model.h>
#include <kolo/collectives/transport/point_to_point.h>
#include <kolo/collectives/transport/topology.h>

namespace kolo {

/// All ranks call it, and wait in it for about a tenth of a second; all get the same. Rank 0 exchanges
/// messages with the next rank of its node, and with the lowest rank of the next node; where there is none,
/// the default constants stay. How fast it reduces is measured on rank 0 alone. Throws DeadlineExceededError
/// where a rank does not answer for 30 s.
CostModel measure_costs(PointToPoint& network, const Topology& topology);

}  // namespace kolo
