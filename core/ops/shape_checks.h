// What shape functions check because a graph from a file may say anything: sizes that overflow, and inputs of
// gradient ops that no gradient function has made fit.
#pragma once

#include <cstdint>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/op_schema.h>

namespace kolo::detail {

/// a + b and a · b. Throws InvalidArgumentError where the result does not fit in 64 bits.
inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw InvalidArgumentError("{} + {} does not fit in 64 bits", a, b);
  return sum;
}
inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    throw InvalidArgumentError("{} times {} does not fit in 64 bits", a, b);
  return product;
}

/// Throws InvalidArgumentError unless input `i` can have the shape `wanted`; `why` says where that comes
/// from.
inline void check_input(const ShapeContext& c, int i, const Shape& wanted, const char* why) {
  if (!c.input(i).is_compatible_with(wanted))
    throw InvalidArgumentError("input {} is {}; it must be {}, {}", i, c.input(i), wanted, why);
}

/// A shape function: all inputs have one shape, which is that of output 0.
inline void alike(ShapeContext& c) {
  Shape shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    check_input(c, i, shape, "as the inputs before it");
    shape = shape.merged_with(c.input(i));
  }
  c.set_output(0, std::move(shape));
}

}  // namespace kolo::detail
