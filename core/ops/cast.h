// Another element type.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// Between all types but string. A float becomes the whole number towards 0; beyond that type's range the
/// nearest it has, NaN 0. Whole numbers wrap around. bool: 0 or 1; everything but 0 is true. A gradient flows
/// between floating point types. x itself if it has the type already.
Output cast(const Scope& s, Output x, DType dtype);

}  // namespace kolo
