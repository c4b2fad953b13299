// Gradients travel as products of two narrow matrices: Vogels, Karimireddy, Jaggi, "PowerSGD", NeurIPS 2019.
#pragma once

#include <kolo/optimizer/compression/compression.h>

namespace kolo {

/// A gradient of two dimensions or more is a matrix M of its first dimension × the rest. With what earlier
/// steps have left out added to it, it travels as P = M·Q, reduced and made orthonormal, and Mᵀ·P, reduced:
/// rank · (n + m) elements instead of n · m. Q is the last step's second factor. Gradients of fewer
/// dimensions, for which that is no less, or that are not f32 or f64, travel as they are. State, saved with a
/// checkpoint:
/// `<variable>/powersgd_q`, and `<variable>/powersgd_error`, each rank's own. A step whose gradient is not
/// finite leaves both as they were. Average and sum alone. Throws InvalidArgumentError for rank < 1.
std::shared_ptr<const Compression> powersgd_compression(std::int64_t rank = 1);

}  // namespace kolo
