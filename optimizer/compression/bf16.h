// Gradients travel in 16 bits: the range of f32 with 8 bits of precision.
#pragma once

#include <kolo/optimizer/compression/compression.h>

namespace kolo {

/// f32 and f64 gradients are cast to bfloat16 inside their bucket, reduced, and cast back. What does not fit,
/// on one rank or as a sum, is found on all: the step ends with InvalidArgumentError `the gradient of
/// "<variable>" is not finite after bf16 compression`; with dynamic loss scaling the step is skipped instead.
std::shared_ptr<const Compression> bf16_compression();

}  // namespace kolo
