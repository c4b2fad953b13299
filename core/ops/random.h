// Random tensors. The numbers are a function of the graph's seed, the op's seed and how often the op has run:
// the same on any number of threads.
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// In [low, high). f32 or f64, `shape` fully known, else InvalidArgumentError.
/// `seed`: of the op itself; 0 is none: its sequence then follows from its name. With Graph::set_seed, or a
/// seed of its own, the sequence starts anew in each session; without both it differs from session to
/// session.
Output random_uniform(const Scope& s, DType dtype, Shape shape, double low = 0, double high = 1,
                      std::int64_t seed = 0);
/// Likewise.
Output random_normal(const Scope& s, DType dtype, Shape shape, double mean = 0, double stddev = 1,
                     std::int64_t seed = 0);
/// Likewise; of the normal distribution all beyond mean ± 2 · stddev is cut off.
Output truncated_normal(const Scope& s, DType dtype, Shape shape, double mean = 0, double stddev = 1,
                        std::int64_t seed = 0);

}  // namespace kolo
