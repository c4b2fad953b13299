// What LARS and LAMB share: the step of a layer is measured by the length of its weights.
#pragma once

#include <string>
#include <vector>

#include <kolo/core/ops/variables.h>

namespace kolo::detail {

/// A range of the elements of another variable.
bool is_part(const Variable& variable);

/// False for biases and scales, which are short for other reasons than weights are. Of a part, its whole is
/// asked.
bool adapts(const Variable& variable);

/// a / b for scalars, 1 where one of them is 0.
Output trust_ratio(const Scope& s, Output a, Output b);

/// The norms of tensors of which each rank has the elements of a part, over all ranks, each of its tensor's
/// type. One reduction for all of them; nothing for none. names: one each, the same on all ranks.
Outputs norms_over_ranks(const Scope& s, const Outputs& parts, const std::vector<std::string>& names);

}  // namespace kolo::detail
