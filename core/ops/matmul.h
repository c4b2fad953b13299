// Matrix products.
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

/// A product for each pair of matrices: a […, rows, inner] and b […, inner, cols] → […, rows, cols], with the
/// same leading dimensions; at least 3 dimensions in all. Throws InvalidArgumentError for other shapes.
Output batch_matmul(const Scope& s, Output a, Output b, MatmulOptions options = {});

}  // namespace kolo
