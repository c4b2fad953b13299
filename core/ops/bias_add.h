// Adds one number per channel.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// Which dimension of an image batch holds the channels.
enum class DataFormat { nchw, nhwc };

/// x plus bias [C]; f32, f64. C is dimension 1 of x if x has 4 dimensions and `format` is nchw, else x's last
/// dimension. Throws InvalidArgumentError if x has fewer than 2 dimensions or another number of channels.
Output bias_add(const Scope& s, Output x, Output bias, DataFormat format = DataFormat::nchw);

}  // namespace kolo
