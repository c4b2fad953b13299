// Tensors made larger at their edges.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// x with `paddings[i]` = {before, after} more elements in dimension i, all of them `value`. Any type but
/// string. Throws InvalidArgumentError unless there is one pair, of numbers ≥ 0, for each dimension.
Output pad(const Scope& s, Output x, const std::vector<std::pair<std::int64_t, std::int64_t>>& paddings,
           double value = 0);

}  // namespace kolo
