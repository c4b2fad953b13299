// An iterator of a client of another process, as its graph goes over the wire: what its elements are, not
// where they come from.
#pragma once

#include <cstdint>
#include <vector>

#include <kolo/core/tensor/shape.h>

namespace kolo::detail {

/// Inputs as IteratorNext. Attribute `shapes`: encode_shapes() of its outputs. partition() refuses a step
/// that needs it.
inline constexpr const char* kClientIteratorOp = "_ClientIterator";

/// For each: its rank and its dimensions, −1 where they are unknown.
std::vector<std::int64_t> encode_shapes(const std::vector<Shape>& shapes);
/// Throws InvalidArgumentError for what encode_shapes() does not give.
std::vector<Shape> decode_shapes(const std::vector<std::int64_t>& numbers);

}  // namespace kolo::detail
