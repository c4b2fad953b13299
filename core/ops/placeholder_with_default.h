// A value that may be fed.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

/// `input` where it is not fed. `shape`: what may be fed; dimensions of −1 are open. Throws
/// InvalidArgumentError if `input` itself does not fit it.
Output placeholder_with_default(const Scope& s, Output input, Shape shape);

}  // namespace kolo
