// Layer normalization: each example by itself. Ba, Kiros, Hinton, arXiv:1607.06450.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// y = (x − mean) / √(variance + epsilon) · scale + offset, with mean and variance (the mean squared
/// deviation) along the last dimension. x [N,…,D], f32 or f64; scale and offset [D]. Throws
/// InvalidArgumentError for other shapes, or if epsilon is negative.
Output layer_norm(const Scope& s, Output x, Output scale, Output offset, double epsilon = 1e-5);

}  // namespace kolo
