// What metrics share with losses.
#pragma once

#include <string>

#include <kolo/models/keras/losses.h>

namespace kolo::keras::detail {

/// "mse" → "mean_squared_error"; others as they are.
std::string long_name(const std::string& name);
/// None if there is no such loss.
LossFunction known_loss(const std::string& name);
/// [N,…] → [N].
Output mean_by_sample(const Scope& s, Output values);

}  // namespace kolo::keras::detail
