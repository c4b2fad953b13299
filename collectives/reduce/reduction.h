// The elements that a collective works on, and what an allreduce or a reduce-scatter does to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <kolo/core/tensor/dtype.h>

namespace kolo {

/// Elements that a collective reads and writes. Borrowed.
struct TypedBuffer {
  std::byte* bytes = nullptr;
  std::int64_t elements = 0;
  DType dtype = DType::f32;

  template <typename T>
  static TypedBuffer of(std::span<T> elements) {
    return {reinterpret_cast<std::byte*>(elements.data()), static_cast<std::int64_t>(elements.size()),
            dtype_of<T>()};
  }
};

/// average is the sum divided by the number of ranks; booleans are combined by or (sum, max) and and
/// (product, min). adasum adds what is orthogonal and averages what is parallel (Maleki et al., "Scaling
/// distributed training with adaptive summation", MLSys 2021); like average it is for floating types.
enum class ReduceOp : std::uint8_t { sum, average, min, max, product, adasum };

/// "sum", "average", …: the enumerator's own spelling.
const char* name(ReduceOp op);
/// From that spelling. Throws InvalidArgumentError naming the known ones.
ReduceOp reduce_op_from_name(std::string_view text);
/// Throws InvalidArgumentError `average is not defined for int32; use sum, or cast to a floating type`, the
/// same for adasum, and for strings with every op.
void check_reducible(ReduceOp op, DType dtype);

/// Scales are for floating types, and apply in f32 (f64 for f64): every rank's elements × prescale are
/// combined by `op`, the result is × postscale. A scale of 1 costs nothing.
struct Reduction {
  ReduceOp op = ReduceOp::sum;
  double prescale = 1;
  double postscale = 1;

  Reduction() = default;
  Reduction(ReduceOp op, double prescale = 1, double postscale = 1)  // NOLINT(google-explicit-constructor)
      : op(op), prescale(prescale), postscale(postscale) {}
  bool is_scaled() const { return prescale != 1 || postscale != 1; }
  bool operator==(const Reduction&) const = default;
};

/// Throws InvalidArgumentError for a scale that is not a number: no two ranks would agree on it.
void check_scales(const Reduction& reduction);
/// Throws InvalidArgumentError as check_reducible and check_scales do, and `scale factors need a floating
/// dtype`.
void check_reducible(const Reduction& reduction, DType dtype);

}  // namespace kolo
