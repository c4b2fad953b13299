// Which costs the choice of algorithms goes by.
#pragma once

#include <kolo/collectives/algorithms/cost_model.h>
#include <kolo/collectives/engine/options.h>
#include <kolo/collectives/transport/point_to_point.h>
#include <kolo/collectives/transport/topology.h>

namespace kolo::detail {

/// The defaults; with `autotune` what rank 0 measures; with `cost_table` what rank 0 reads from that file.
/// All ranks call it and get the same. Rank 0 appends what was found to `autotune_log`, behind "# ". Throws
/// InvalidArgumentError on all ranks if the file cannot be read or is no table of costs.
CostModel decide_costs(const EngineOptions& options, PointToPoint& network, const Topology& topology);

}  // namespace kolo::detail
