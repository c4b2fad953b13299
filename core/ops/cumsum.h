// Running sums.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// exclusive: element i is the sum of those before it, without its own. reverse: the sums run from the end.
struct CumsumOptions {
  bool exclusive = false;
  bool reverse = false;
};

/// Element i along `axis` is the sum of the elements up to and with it; −1 is the last dimension. f32 f64 i32
/// i64; float sums are accumulated in double, the result does not depend on the number of threads. Throws
/// InvalidArgumentError if the axis is outside x.
Output cumsum(const Scope& s, Output x, int axis = 0, CumsumOptions options = {});

}  // namespace kolo
