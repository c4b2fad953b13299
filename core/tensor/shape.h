// The dimensions of a tensor. In a graph some may be unknown (−1), or their number itself.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace kolo {

/// A value. Prints as [2,3]; unknown dimensions [?,784]; a scalar [];
/// an unknown number of dimensions <unknown>.
class Shape {
 public:
  Shape() = default;  // a scalar
  /// −1 is unknown. Throws InvalidArgumentError for dimensions below −1.
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::vector<std::int64_t>(dims)) {}
  explicit Shape(std::vector<std::int64_t> dims);
  static Shape unknown_rank();

  bool has_rank() const { return has_rank_; }
  /// Number of dimensions. Throws FailedPreconditionError if it is unknown.
  int rank() const;
  /// axis −1 is the last. Throws OutOfRangeError outside [−rank, rank).
  std::int64_t dim(int axis) const;
  const std::vector<std::int64_t>& dims() const { return dims_; }
  bool is_fully_known() const;
  /// Product of the dimensions, 1 for a scalar. Throws FailedPreconditionError unless fully known,
  /// InvalidArgumentError if it does not fit in 63 bits.
  std::int64_t elements() const;

  /// This shape with another `value` (or −1) along `axis`. Throws as dim and the constructor do.
  Shape with_dim(int axis, std::int64_t value) const;
  /// True if some tensor could have both shapes: unknown dimensions fit everything.
  bool is_compatible_with(const Shape& other) const;
  /// What is known from either. Throws InvalidArgumentError if they are incompatible.
  Shape merged_with(const Shape& other) const;
  bool operator==(const Shape&) const = default;
  std::string to_string() const;

 private:
  std::vector<std::int64_t> dims_;
  bool has_rank_ = true;
};

/// NumPy's rule: trailing dimensions are equal, or one is 1. An unknown against a known other than 1 takes
/// the known, against 1 stays unknown. Throws InvalidArgumentError `Incompatible shapes: [2,3] vs. [4]`.
Shape broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace kolo

template <>
struct fmt::formatter<kolo::Shape> : fmt::formatter<std::string_view> {
  fmt::format_context::iterator format(const kolo::Shape& shape, fmt::format_context& context) const;
};
