// Allreduce in log₂ n exchanges of everything: the fewest steps, for the smallest messages.
#pragma once

#include <memory>

#include <kolo/collectives/algorithms/allreduce_registry.h>

namespace kolo {

/// Reduces `buffer` in place: ranks exchange their partial results at distance 1, 2, 4, … (Thakur,
/// Rabenseifner and Gropp, 2005). Where the number of ranks n is not a power of two the ranks from the
/// largest one below it, p, on give their elements to rank − p and get the result from there. Both partners
/// combine the lower rank's operand with the higher one's, in this order, so that all ranks hold the same
/// bits. A 16-bit partial result is rounded ⌈log₂ n⌉ times. Throws InvalidArgumentError where `op` is not
/// defined for the type. Cost per rank: log₂ p messages with all bytes after each other, and two more where n
/// is no power of two; memory for the buffer once more.
std::shared_ptr<Collective> recursive_doubling_allreduce(const AlgorithmContext& context,
                                                         const TypedBuffer& buffer, ReduceOp op);

}  // namespace kolo
