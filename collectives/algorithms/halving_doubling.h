// Allreduce in 2 log₂ n steps that sends no byte twice: for what is too large for a tree and too small, or
// over too many ranks, for a ring.
#pragma once

#include <memory>

#include <kolo/collectives/algorithms/allreduce_registry.h>

namespace kolo {

/// Reduces `buffer` in place. Reduce-scatter by recursive halving, all-gather by recursive doubling (Thakur,
/// Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl. 19 (2005)). Where the number of ranks n is not
/// a power of two the ranks from the largest one below it, p, on add their elements to those of rank − p
/// first, and get the result from there. Each element is finished by one rank, so all hold the same bits. A
/// 16-bit partial sum is rounded ⌈log₂ n⌉ times. Throws InvalidArgumentError where `op` is not defined for
/// the type.
/// Cost per rank: 2 log₂ p messages and 2(p−1)/p of the bytes sent and received, both once more where n is no
/// power of two; memory for half of the buffer (all of it on ranks that others add to).
std::shared_ptr<Collective> halving_doubling_allreduce(const AlgorithmContext& context,
                                                       const TypedBuffer& buffer, ReduceOp op);

}  // namespace kolo
