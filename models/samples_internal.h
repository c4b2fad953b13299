// Samples whose kind says more than array_samples can.
#pragma once

#include <memory>

#include <kolo/models/samples.h>

namespace kolo::models::detail {

/// As array_samples, with the kind's name, note, class names and table; its shape is that of x, and classes 0
/// are found. For numbers to find and several labels (0 and 1) y is f32 [N,outputs]; throws
/// InvalidArgumentError for what is not finite there.
std::shared_ptr<const SampleSet> array_samples_of(SampleKind kind, Tensor x, Tensor y);

}  // namespace kolo::models::detail
