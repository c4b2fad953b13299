// Matrices: products, one number added per column or channel, orthonormal bases.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

// Matrix products.

/// Which factors of matmul are transposed.
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

// Adds one number per channel.

/// Which dimension of an image batch holds the channels.
enum class DataFormat { nchw, nhwc };

/// x plus bias [C]; f32, f64. C is dimension 1 of x if x has 4 dimensions and `format` is nchw, else x's last
/// dimension. Throws InvalidArgumentError if x has fewer than 2 dimensions or another number of channels.
Output bias_add(const Scope& s, Output x, Output bias, DataFormat format = DataFormat::nchw);

// An orthonormal basis of what the columns of a matrix span.

/// x [n, r], n ≥ r, f32 or f64 → [n, r] with orthonormal columns, by Gram–Schmidt, twice: column j is column
/// j of x without what lies along the columns before it. A column of which nothing is left, a zero one too,
/// becomes a direction that the columns before it lack. Computed in double by one thread. NaN where x is not
/// finite. Has no gradient. Throws InvalidArgumentError for other shapes.
Output orthogonalize(const Scope& s, Output x);

}  // namespace kolo
