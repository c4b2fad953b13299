// The input that the models for digits take.
#pragma once

#include <string_view>

#include <kolo/core/graph/output.h>

namespace kolo::models::detail {

/// Throws InvalidArgumentError naming `model` unless x is f32 or f64 and [N,784] or [N,1,28,28].
void check_digits(const Output& x, std::string_view model);

}  // namespace kolo::models::detail
