// One rank's bytes for all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/transport/point_to_point.h>

namespace kolo {

/// root's bytes on every rank; all give the same number of bytes. Few chunks go along a binomial tree
/// (⌈log₂ n⌉ messages after each other); many go from rank to rank, where each rank sends them only once. A
/// rank passes a chunk on while the next is coming.
/// Cost per rank, of a long message: its bytes received once and sent once.
std::shared_ptr<Collective> broadcast(PointToPoint& network, std::span<std::byte> bytes, int root,
                                      std::int64_t chunk_bytes);

}  // namespace kolo
