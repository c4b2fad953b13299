// The functions between layers: activations, softmax, dropout. relu, sigmoid and tanh are in ops/math.h.
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo {

// Activations, element by element: f32 and f64. f32 to about 1e-6, relative to the larger of 1 and the
// value.

/// x · Φ(x), with the normal distribution Φ; or, `approximate`, with 0.5 · (1 + tanh(√(2/π) · (x + 0.044715
/// x³))) in its place. Hendrycks, Gimpel, arXiv:1606.08415.
Output gelu(const Scope& s, Output x, bool approximate = false);
/// x · sigmoid(x). Ramachandran, Zoph, Le, arXiv:1710.05941.
Output swish(const Scope& s, Output x);
/// x where x > 0, else alpha · (eˣ − 1). Clevert, Unterthiner, Hochreiter, ICLR 2016.
Output elu(const Scope& s, Output x, double alpha = 1);
/// elu that keeps mean and variance: 1.0507 · elu(x, 1.67326). Klambauer et al., NIPS 2017.
Output selu(const Scope& s, Output x);
/// x where x > 0, else alpha · x.
Output leaky_relu(const Scope& s, Output x, double alpha = 0.2);
/// log(1 + eˣ).
Output softplus(const Scope& s, Output x);
/// min(max(x, 0), 6); its gradient at 0 and 6 is 0.
Output relu6(const Scope& s, Output x);

// Shares of exponentials along one dimension.

/// exp(logits) / Σ exp(logits) along `axis` (−1 the last), without overflow; f32, f64.
/// Throws InvalidArgumentError for a scalar, or an axis that logits do not have.
Output softmax(const Scope& s, Output logits, int axis = -1);
/// Its logarithm: logits − log Σ exp(logits).
Output log_softmax(const Scope& s, Output logits, int axis = -1);

// Dropout: Srivastava et al., JMLR 15 (2014).

/// Each element of x (f32, f64) is 0 with probability `rate`, else x / (1 − rate), anew in each run; the
/// gradient passes where x did. Its inference form (inference_form.h) is x itself, as is dropout of rate 0.
/// seed: as of random ops (random.h), but each rank draws numbers of its own, rank 0 those of one rank alone.
/// Throws InvalidArgumentError `rate must be a scalar tensor or a float in
/// the range [0, 1), got 1`.
Output dropout(const Scope& s, Output x, double rate, std::int64_t seed = 0);

}  // namespace kolo
