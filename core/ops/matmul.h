// Matrix product.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

struct MatmulOptions {
  bool transpose_a = false;  // a is stored [inner, rows]
  bool transpose_b = false;  // b is stored [cols, inner]
};

/// a [rows, inner] times b [inner, cols]; f32, f64. Throws InvalidArgumentError unless both are matrices of
/// one type whose inner dimensions are equal.
Output matmul(const Scope& s, Output a, Output b, MatmulOptions options = {});

}  // namespace kolo
