// What is known of a tensor beside its elements, as tensors. No gradient flows through them.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// x of any type. The dimensions of x, [rank]; out_type: i32 or i64. A number that i32 does not hold:
/// InvalidArgumentError when it runs.
Output shape_of(const Scope& s, Output x, DType out_type = DType::i32);
/// How many elements x has, a scalar; likewise.
Output size_of(const Scope& s, Output x, DType out_type = DType::i32);
/// How many dimensions x has, an i32 scalar.
Output rank_of(const Scope& s, Output x);

}  // namespace kolo
