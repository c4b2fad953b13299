// What the optimizers' sources share.
#pragma once

#include <span>
#include <string>

#include <kolo/optimizer/optimizer.h>

namespace kolo::detail {

/// ["fc1/w", "fc1/b"].
std::string variable_list(std::span<const GradientPair> pairs);
/// Throws InvalidArgumentError unless the gradient, which is there, has its variable's type and a shape that
/// fits.
void check_alike(const GradientPair& pair);

}  // namespace kolo::detail
