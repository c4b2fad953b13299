// What moves bytes unchanged, over messages between two ranks: barrier, broadcast, exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/transport/point_to_point.h>

namespace kolo {

/// Finishes when every rank has started it. Dissemination (Hensgen, Finkel and Manber, Int. J. Parallel
/// Programming 17 (1988)): in round k a message goes 2^k ranks to the right.
/// Cost per rank: ⌈log₂ n⌉ messages of one byte.
std::shared_ptr<Collective> dissemination_barrier(PointToPoint& network);

/// root's bytes on every rank; all give the same number of bytes. Few chunks go along a binomial tree
/// (⌈log₂ n⌉ messages after each other); many go from rank to rank, where each rank sends them only once. A
/// rank passes a chunk on while the next is coming.
/// Cost per rank, of a long message: its bytes received once and sent once.
std::shared_ptr<Collective> broadcast(PointToPoint& network, std::span<std::byte> bytes, int root,
                                      std::int64_t chunk_bytes);

/// Messages from everybody to everybody, all under way at once.
/// out[r] goes to rank r, in[r] comes from it; out[own] is copied to in[own]. Each pair of ranks gives equal
/// sizes; nothing is sent for an empty block. Both lists have size() entries, or none: then nothing goes out
/// (or comes in). What the blocks refer to must live until the operation has finished.
/// Cost per rank: its bytes once; up to size() − 1 messages at a time (more for blocks above 1 GiB).
std::shared_ptr<Collective> exchange(PointToPoint& network, std::span<const std::span<const std::byte>> out,
                                     std::span<const std::span<std::byte>> in);

}  // namespace kolo
