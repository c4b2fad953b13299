// All ranks wait for each other.
#pragma once

#include <memory>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/transport/point_to_point.h>

namespace kolo {

/// Finishes when every rank has started it. Dissemination (Hensgen, Finkel and Manber, Int. J. Parallel
/// Programming 17 (1988)): in round k a message goes 2^k ranks to the right.
/// Cost per rank: ⌈log₂ n⌉ messages of one byte.
std::shared_ptr<Collective> dissemination_barrier(PointToPoint& network);

}  // namespace kolo
