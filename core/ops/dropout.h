// Dropout: Srivastava et al., JMLR 15 (2014).
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// Each element of x (f32, f64) is 0 with probability `rate`, else x / (1 − rate), anew in each run; the
/// gradient passes where x did. Its inference form (inference_form.h) is x itself, as is dropout of rate 0.
/// seed: as of random ops (random.h). Throws InvalidArgumentError `rate must be a scalar tensor or a float in
/// the range [0, 1), got 1`.
Output dropout(const Scope& s, Output x, double rate, std::int64_t seed = 0);

}  // namespace kolo
