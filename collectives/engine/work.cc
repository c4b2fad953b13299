#include <kolo/collectives/engine/work.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <kolo/collectives/reduce/reduce.h>
#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

template <typename T>
void fill(const TypedBuffer& buffer, T value) {
  std::fill_n(reinterpret_cast<T*>(buffer.bytes), buffer.elements, value);
}

template <typename T>
T neutral(ReduceOp op) {
  using Limits = std::numeric_limits<T>;
  switch (op) {
    case ReduceOp::min: return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case ReduceOp::max: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case ReduceOp::product: return T{1};
    default: return T{0};
  }
}

void scale_alone(const Request& request, const TypedBuffer& buffer) {
  for (const double scale : {request.reduction.prescale, request.reduction.postscale})
    if (scale != 1) multiply(buffer.dtype, buffer.bytes, buffer.elements, scale);
}

Tensor copy_of(const TypedBuffer& buffer, const Shape& shape, Allocator& allocator) {
  Tensor copy(buffer.dtype, shape, allocator);
  if (copy.bytes() > 0) std::memcpy(copy.raw(), buffer.bytes, copy.bytes());
  return copy;
}

}  // namespace

std::vector<std::int64_t> rows_by_rank(std::int64_t rows, int ranks) {
  std::vector<std::int64_t> counts(ranks, rows / ranks);
  for (int rank = 0; rank < rows % ranks; ++rank) ++counts[rank];
  return counts;
}

void fill_neutral(ReduceOp op, const TypedBuffer& buffer) {
  switch (buffer.dtype) {
    case DType::f32: return fill(buffer, neutral<float>(op));
    case DType::f64: return fill(buffer, neutral<double>(op));
    case DType::f16: return fill(buffer, Half(neutral<float>(op)));
    case DType::bf16: return fill(buffer, BFloat16(neutral<float>(op)));
    case DType::i32: return fill(buffer, neutral<std::int32_t>(op));
    case DType::i64: return fill(buffer, neutral<std::int64_t>(op));
    case DType::u8: return fill(buffer, neutral<std::uint8_t>(op));
    case DType::i8: return fill(buffer, neutral<std::int8_t>(op));
    case DType::boolean: return fill(buffer, op == ReduceOp::min || op == ReduceOp::product);
    case DType::string: break;
  }
  throw InternalError("{} has no neutral element", numpy_name(buffer.dtype));
}

void run_alone(EngineOperation& operation) {
  const Request& request = *operation.request;
  switch (request.kind) {
    case OpKind::allreduce:
    case OpKind::grouped_allreduce:
    case OpKind::reduce_scatter:
    case OpKind::grouped_reduce_scatter:
      for (const auto& buffer : operation.buffers) scale_alone(request, buffer);
      break;
    case OpKind::allgather:
    case OpKind::grouped_allgather:
    case OpKind::alltoall:
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::broadcast_object:
    case OpKind::allgather_object:
      for (std::size_t t = 0; t < operation.buffers.size(); ++t) {
        operation.results.push_back(
            copy_of(operation.buffers[t], request.tensors[t].shape, *operation.allocator));
        operation.numbers.push_back(request.rows(t));
      }
      break;
    default: break;
  }
}

}  // namespace kolo::detail
