// Gradients that some ranks have and others lack.
#pragma once

#include <span>
#include <vector>

#include <kolo/core/runtime/group.h>
#include <kolo/optimizer/optimizer.h>

namespace kolo::detail {

/// The pairs, with zeros where this rank has no gradient of a variable in `may_be_absent` and another rank of
/// the group has one: no rows where that is slices, unless `whole`. Collective; all ranks give the same list
/// of variables. Throws InvalidArgumentError for zeros of a shape that is not fully known.
std::vector<GradientPair> zeros_for_absent(const Scope& s, std::span<const GradientPair> pairs,
                                           std::span<const Variable> may_be_absent, Group& group, bool whole);

}  // namespace kolo::detail
