// What compressions with error feedback share: the part of a gradient that did not travel is added to the
// next one.
#pragma once

#include <functional>
#include <string>

#include <kolo/core/ops/variables.h>
#include <kolo/optimizer/compression/compression.h>

namespace kolo::detail {

/// Throws InvalidArgumentError for an op that such a compression cannot serve.
void check_linear(const GradientReducer& reducer, const std::string& compression);

/// A variable beside the gradient's, named `<variable>/<suffix>`, that starts at `initial` (zeros: none) and
/// that a checkpoint may lack. own_of_rank: each rank has its own.
Variable compression_state(const Scope& s, const Variable& variable, const std::string& suffix, Shape shape,
                           bool own_of_rank, const std::function<Output(const Scope&)>& initial = {});

/// `reduced`, after `update` has been done where all of it is finite.
Output with_state_update(const Scope& s, Output reduced,
                         const std::function<Operation(const Scope&)>& update);

}  // namespace kolo::detail
