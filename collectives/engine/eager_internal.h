// What the eager calls have in common: what they say besides their kind, and what they bring.
#pragma once

#include <cstring>
#include <utility>

#include <kolo/collectives/engine/call.h>
#include <kolo/collectives/engine/eager.h>

namespace kolo::detail {

inline CallOptions call_options(const EagerOptions& options) {
  return {.name = options.name,
          .process_set = options.process_set.id(),
          .average_over_all = options.join_average == JoinAverage::all,
          .allocator = options.allocator};
}

inline Shape flat(const TypedBuffer& buffer) { return Shape{buffer.elements}; }

inline TypedBuffer buffer_of(const Tensor& tensor) {
  return {tensor.raw(), tensor.elements(), tensor.dtype()};
}

inline void add(EngineOperation& operation, Request& request, const TypedBuffer& buffer, const Shape& shape) {
  operation.buffers.push_back(buffer);
  request.tensors.push_back({buffer.dtype, shape});
}

/// A copy that the engine may write to.
inline Tensor add_copy(EngineOperation& operation, Request& request, const TypedBuffer& buffer,
                       const Shape& shape, Allocator& allocator) {
  Tensor copy(buffer.dtype, shape, allocator);
  if (copy.bytes() > 0) std::memcpy(copy.raw(), buffer.bytes, copy.bytes());
  add(operation, request, buffer_of(copy), shape);
  operation.tensors.push_back(copy);
  return copy;
}

inline void check_rows(OpKind kind, const Shape& shape) {
  if (shape.rank() == 0)
    throw InvalidArgumentError("{} needs at least one dimension; this is a scalar", name(kind));
}

}  // namespace kolo::detail
