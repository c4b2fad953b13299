// Gradients travel in 16 bits: IEEE half precision: 11 bits of precision, nothing beyond 65504.
#pragma once

#include <kolo/optimizer/compression/compression.h>

namespace kolo {

/// f32 and f64 gradients are cast to float16 inside their bucket, reduced, and cast back. What does not fit,
/// on one rank or as a sum, is found on all: the step ends with InvalidArgumentError `the gradient of
/// "<variable>" is not finite after fp16 compression`; with dynamic loss scaling the step is skipped instead.
std::shared_ptr<const Compression> fp16_compression();

}  // namespace kolo
