// Element-wise reductions of arrays in memory, with the widest vectors that the machine has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <kolo/collectives/reduce/reduction.h>

namespace kolo {

/// dst = dst op src for `elements` elements; average reduces as sum; not adasum. The arrays do not overlap
/// partly. 16-bit floats are combined in f32 and rounded to nearest even; integers wrap; min and max of a NaN
/// and anything are NaN; booleans as ReduceOp says. The type is one that check_reducible accepts.
void reduce(ReduceOp op, DType dtype, void* dst, const void* src, std::int64_t elements);

/// dst = (dst + src) ÷ divisor: in f32 for f16 and bf16, with one rounding. Floating types only.
/// A division, not × (1/divisor), which is not the identity for 41 equal values.
void reduce_and_divide(DType dtype, void* dst, const void* src, std::int64_t elements, double divisor);

/// dst = (dst × dst_factor + src × src_factor) ÷ divisor, in f32 with one rounding. f16 and bf16 only.
void reduce_scaled(DType dtype, void* dst, float dst_factor, const void* src, float src_factor,
                   std::int64_t elements, float divisor);

/// dst = dst ÷ divisor. Floating types only.
void divide(DType dtype, void* dst, std::int64_t elements, double divisor);

/// dst = dst × factor, in f32 (f64 for f64) with one rounding. Floating types only.
void multiply(DType dtype, void* dst, std::int64_t elements, double factor);

/// dst = src, exactly. f16 and bf16 only. The arrays do not overlap.
void widen(DType dtype, float* dst, const void* src, std::int64_t elements);

/// dst = src ÷ divisor, rounded once to nearest even. f16 and bf16 only. The arrays do not overlap.
void narrow(DType dtype, void* dst, const float* src, std::int64_t elements, double divisor = 1);

/// Each array of `to` = from[0] op from[1] op …, combined in this order; average divides the sum by divisor.
/// Rules as for reduce(), but 16-bit floats are rounded once, at the end. Every array has `elements`
/// elements; an array of `to` may be one of `from`, and none overlaps another partly. At least one in each
/// list.
void reduce_many(ReduceOp op, DType dtype, std::span<std::byte* const> to,
                 std::span<const std::byte* const> from, std::int64_t elements, double divisor);

}  // namespace kolo
