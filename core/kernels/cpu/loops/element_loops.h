// The inner loops of element-wise kernels, compiled once for each instruction set and chosen at run time:
// machines differ.
#pragma once

#include <cstdint>
#include <string_view>

#include <kolo/core/tensor/dtype.h>

namespace kolo::detail {

/// out[i] = op(a[i · a_step], b[i · b_step]) for i in [0, count). A step is 1, or 0 for an operand that is
/// repeated. `out` may be an operand whose step is 1, if an element of it is as large.
using BinaryLoop = void (*)(const void* a, std::int64_t a_step, const void* b, std::int64_t b_step, void* out,
                            std::int64_t count);
/// out[i] = op(x[i]); `out` may be x, if an element of it is as large.
using UnaryLoop = void (*)(const void* x, void* out, std::int64_t count);

/// For the processor this runs on. op: a name of elements/table.h, which says the types and, by the functor,
/// the result. Null for other names and types.
BinaryLoop binary_loop(std::string_view op, DType type);
UnaryLoop unary_loop(std::string_view op, DType type);

}  // namespace kolo::detail
