// First values of weights whose spread follows from their shape. Plain ones are zeros, ones and fill
// (ops/basic.h) and the distributions of ops/random.h.
#pragma once

#include <kolo/core/ops/random.h>

namespace kolo {

/// How many inputs feed an element of the result and how many outputs an input reaches. Dense weights are
/// [inputs, outputs], convolution weights [outputs, inputs, height, width] (any number of window dimensions);
/// a vector counts as both.
struct Fans {
  double in;
  double out;
};
/// Throws FailedPreconditionError unless `shape` is fully known.
Fans fans_of(const Shape& shape);

/// Glorot and Bengio: "Understanding the difficulty of training deep feedforward neural networks", AISTATS
/// 2010, as in Keras: uniform in ±√(6 / (in + out)); or normal of standard deviation √(2 / (in + out)),
/// truncated at two of the deviations before truncation.
Output glorot_uniform(const Scope& s, DType dtype, Shape shape, std::int64_t seed = 0);
Output glorot_normal(const Scope& s, DType dtype, Shape shape, std::int64_t seed = 0);
/// He, Zhang, Ren, Sun: "Delving deep into rectifiers", ICCV 2015, as in Keras: uniform in ±√(6 / in); or
/// normal of standard deviation √(2 / in), truncated likewise.
Output he_uniform(const Scope& s, DType dtype, Shape shape, std::int64_t seed = 0);
Output he_normal(const Scope& s, DType dtype, Shape shape, std::int64_t seed = 0);

}  // namespace kolo
