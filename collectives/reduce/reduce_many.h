// The elements of several arrays combined at once: one pass over memory for any number of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <kolo/collectives/reduce/reduce_op.h>

namespace kolo {

/// Each array of `to` = from[0] op from[1] op …, combined in this order; average divides the sum by divisor.
/// Rules as for reduce(), but 16-bit floats are rounded once, at the end. Every array has `elements`
/// elements; an array of `to` may be one of `from`, and none overlaps another partly. At least one in each
/// list.
void reduce_many(ReduceOp op, DType dtype, std::span<std::byte* const> to,
                 std::span<const std::byte* const> from, std::int64_t elements, int divisor);

}  // namespace kolo
