// A variable that is a range of another one's elements: for those who update a variable in parts.
#pragma once

#include <cstdint>

#include <kolo/core/ops/variable.h>

namespace kolo {

/// The elements [first, first + count) of `v`, row-major, as a vector `<v>/shard`: no copy, but the same
/// memory, so that it is initialised, restored and saved with `v`. An update of one is an update of the
/// other, in the order of the graph. Asked for again, it is the same variable. It is in no collection. Throws
/// InvalidArgumentError if the range does not lie in `v`, or `v` is itself a part.
Variable variable_part(const Scope& s, const Variable& v, std::int64_t first, std::int64_t count);

/// The storage that `storage` is a part of; itself where it is no part.
const Node& whole_storage(const Node& storage);
/// What `variable` is a part of; itself where it is no part.
Variable whole_variable(const Variable& variable);

}  // namespace kolo
