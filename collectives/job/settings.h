// What a job starts with besides kolo's own options: MPI's parameters, the costs of messages.
#pragma once

#include <cstdint>

#include <kolo/collectives/algorithms/cost_model.h>
#include <kolo/collectives/engine/options.h>
#include <kolo/collectives/transport/point_to_point.h>
#include <kolo/collectives/transport/topology.h>

namespace kolo::detail {

/// A message of up to chunk_bytes, at most 1 MiB, goes out over TCP at once: Open MPI asks the receiver first
/// from 64 KiB on, and between hosts that are busy in both directions question and answer each wait behind
/// all bytes that are on their way. Sets two OMPI_MCA_ variables of this process, unless either is set; other
/// MPI libraries and networks do not look at them. Before MPI is started, on all ranks alike.
void send_chunks_at_once(std::int64_t chunk_bytes);

/// The defaults; with `autotune` what rank 0 measures; with `cost_table` what rank 0 reads from that file.
/// All ranks call it and get the same. Rank 0 appends what was found to `autotune_log`, behind "# ". Throws
/// InvalidArgumentError on all ranks if the file cannot be read or is no table of costs.
CostModel decide_costs(const EngineOptions& options, PointToPoint& network, const Topology& topology);

}  // namespace kolo::detail
