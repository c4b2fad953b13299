// Digits: where a program gets them from, and what the models for them take.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <kolo/core/graph/output.h>
#include <kolo/models/dataset.h>

namespace kolo::models {

/// The digits that `--data` names: "generated" draws them (generated_digits.h), all else is find_mnist's
/// (mnist.h). Nothing if the test split is asked for and its files are absent. Throws what those throw.
std::optional<Dataset> load_digits(const std::optional<std::string>& data, Split split);

}  // namespace kolo::models

namespace kolo::models::detail {

/// Throws InvalidArgumentError naming `model` unless x is f32 or f64 and [N,784] or [N,1,28,28].
void check_digits(const Output& x, std::string_view model);

}  // namespace kolo::models::detail
