// Numbers of classes as vectors.
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// on: at the position of the class; off: elsewhere. axis: the new dimension of `depth` elements; −1 is the
/// last.
struct OneHotOptions {
  double on = 1;
  double off = 0;
  int axis = -1;
  DType dtype = DType::f32;  // of the result; any but string
};

/// For each number in `indices` (i32 i64 u8, any shape) a vector of `depth` elements: `on` at that position,
/// else `off`. All are `off` for a number outside [0, depth). No gradient flows through it. Throws
/// InvalidArgumentError if the axis is outside the result or the depth negative.
Output one_hot(const Scope& s, Output indices, std::int64_t depth, OneHotOptions options = {});

}  // namespace kolo
