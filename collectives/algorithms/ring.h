// Collectives on a ring: every rank talks to its two neighbours alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <kolo/collectives/algorithms/allreduce_registry.h>

namespace kolo {

/// Reduces `buffer` in place. Reduce-scatter, then all-gather: the array is cut into one segment for each
/// rank; a segment travels once around to be summed and once more to be handed out, in chunks of chunk_bytes
/// that follow each other closely (Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009);
/// bandwidth-optimal). Each element is reduced along one path in one order, so all ranks hold the same bits.
/// Any number of ranks and of elements. A 16-bit partial sum is rounded size() − 1 times.
/// Throws InvalidArgumentError where `op` is not defined for the type.
/// Cost per rank: 2(n−1)/n of the bytes sent and received; its memory is a few chunks.
std::shared_ptr<Collective> ring_allreduce(const AlgorithmContext& context, const TypedBuffer& buffer,
                                           ReduceOp op);

/// The first half of it: afterwards this rank's block holds the reduced elements, the others' are undefined.
/// counts[r]: elements of rank r's block, the same list on all ranks; the blocks follow each other and fill
/// the buffer. Cost per rank: all blocks but its own sent once; steps last as long as their longest block.
std::shared_ptr<Collective> ring_reduce_scatter(const AlgorithmContext& context, const TypedBuffer& buffer,
                                                std::span<const std::int64_t> counts, ReduceOp op);

/// The second half: blocks[r] holds rank r's bytes afterwards, on every rank; before, this rank has filled
/// its own. The blocks may differ in size, not from rank to rank.
std::shared_ptr<Collective> ring_allgather(PointToPoint& network,
                                           std::span<const std::span<std::byte>> blocks,
                                           std::int64_t chunk_bytes);

}  // namespace kolo
