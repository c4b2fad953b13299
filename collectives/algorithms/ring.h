// Ring allreduce: every rank talks to its two neighbours alone.
#pragma once

#include <memory>

#include <kolo/collectives/algorithms/algorithm_context.h>

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

}  // namespace kolo
