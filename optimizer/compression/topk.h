// The largest elements of gradients travel, the others wait: Stich, Cordonnier, Jaggi, "Sparsified SGD with
// memory", NeurIPS 2018.
#pragma once

#include <kolo/optimizer/compression/compression.h>

namespace kolo {

/// Of each f32 or f64 gradient of n elements, with what earlier steps have left out added to it, every rank
/// gives the ⌈ratio · n⌉ elements of largest magnitude, with their places; all are gathered and added up.
/// Where that is more than half of the elements the gradient travels as it is. State, saved with a
/// checkpoint:
/// `<variable>/topk_error`, each rank's own. A step whose gradient is not finite leaves it as it was. Average
/// and sum alone. Throws InvalidArgumentError unless 0 < ratio ≤ 1.
std::shared_ptr<const Compression> topk_compression(double ratio = 0.01);

}  // namespace kolo
