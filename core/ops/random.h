// Random tensors, and first values of weights made of them.
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo {

// Random tensors. The numbers are a function of the graph's seed, the op's seed and how often the op has run:
// the same on any number of threads.

/// In [low, high). f32 or f64, `shape` fully known, else InvalidArgumentError.
/// `seed`: of the op itself; 0 is none: its sequence then follows from its name. With Graph::set_seed, or a
/// seed of its own, the sequence starts anew in each session; without both it differs from session to
/// session. With a seed all ranks of a job draw the same, other than dropout does.
Output random_uniform(const Scope& s, DType dtype, Shape shape, double low = 0, double high = 1,
                      std::int64_t seed = 0);
/// Likewise.
Output random_normal(const Scope& s, DType dtype, Shape shape, double mean = 0, double stddev = 1,
                     std::int64_t seed = 0);
/// Likewise; of the normal distribution all beyond mean ± 2 · stddev is cut off.
Output truncated_normal(const Scope& s, DType dtype, Shape shape, double mean = 0, double stddev = 1,
                        std::int64_t seed = 0);

/// x (f32, f64) with noise added to each element, normal of mean 0 and `stddev`, anew in each run. Its
/// inference form (inference_form.h) is x itself, as is noise of stddev 0. seed: as above, but each rank
/// draws numbers of its own, rank 0 those of one rank alone. Throws InvalidArgumentError for a stddev that is
/// negative or not finite.
Output gaussian_noise(const Scope& s, Output x, double stddev, std::int64_t seed = 0);

// First values of weights whose spread follows from their shape. Plain ones are zeros, ones and fill
// (ops/basic.h) and the distributions above.

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
