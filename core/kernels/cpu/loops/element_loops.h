// The inner loops of element-wise kernels, compiled once for each instruction set and chosen at run time:
// machines differ.
#pragma once

#include <cstdint>

#include <kolo/core/tensor/dtype.h>

namespace kolo::detail {

enum class BinaryOp {
  add,
  sub,
  mul,
  div,
  maximum,
  minimum,
  pow,
  tanh_grad,     // (dy, y)
  sigmoid_grad,  // (dy, y)
  relu_grad,     // (dy, y)
  squared_difference,
  floor_div,
  floor_mod,
};
enum class UnaryOp {
  neg,
  abs,
  sign,
  square,
  sqrt,
  rsqrt,
  exp,
  log,
  tanh,
  sigmoid,
  relu,
  floor,
  ceil,
  round,
  reciprocal,
  log1p,
  expm1,
  sin,
  cos,
  erf,
  is_nan,     // to bool
  is_inf,     // to bool
  is_finite,  // to bool
};
enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal };

/// out[i] = op(a[i · a_step], b[i · b_step]) for i in [0, count). A step is 1, or 0 for an operand that is
/// repeated. `out` may be an operand whose step is 1.
using BinaryLoop = void (*)(const void* a, std::int64_t a_step, const void* b, std::int64_t b_step, void* out,
                            std::int64_t count);
/// out[i] = op(x[i]); `out` may be x, if an element of it is as large.
using UnaryLoop = void (*)(const void* x, void* out, std::int64_t count);

/// For the processor this runs on. f32 and f64, and i32 and i64 for the arithmetic ones; null for other
/// types.
BinaryLoop binary_loop(BinaryOp op, DType type);
UnaryLoop unary_loop(UnaryOp op, DType type);
/// `out` is bool. f32 f64 i32 i64 u8 i8, and bool (false < true); null for other types.
BinaryLoop comparison_loop(Comparison comparison, DType type);

}  // namespace kolo::detail
