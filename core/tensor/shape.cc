#include <kolo/core/tensor/shape.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo {

Shape::Shape(std::vector<std::int64_t> dims) : dims_(std::move(dims)) {
  for (const std::int64_t dim : dims_)
    if (dim < -1)
      throw InvalidArgumentError("a dimension of {} in {}; a dimension is at least 0, or -1 if unknown", dim,
                                 to_string());
}

Shape Shape::unknown_rank() {
  Shape shape;
  shape.has_rank_ = false;
  return shape;
}

int Shape::rank() const {
  if (!has_rank_) throw FailedPreconditionError("the number of dimensions of this shape is unknown");
  return static_cast<int>(dims_.size());
}

std::int64_t Shape::dim(int axis) const {
  const int n = rank();
  if (axis < -n || axis >= n)
    throw OutOfRangeError("axis {} of a tensor of shape {}; it has {} dimensions", axis, to_string(), n);
  return dims_[axis < 0 ? axis + n : axis];
}

bool Shape::is_fully_known() const {
  return has_rank_ && std::find(dims_.begin(), dims_.end(), -1) == dims_.end();
}

std::int64_t Shape::elements() const {
  if (!is_fully_known())
    throw FailedPreconditionError("the number of elements of shape {} is unknown", to_string());
  if (std::find(dims_.begin(), dims_.end(), 0) != dims_.end()) return 0;
  std::int64_t product = 1;
  for (const std::int64_t dim : dims_)
    if (__builtin_mul_overflow(product, dim, &product))
      throw InvalidArgumentError("shape {} has 2^63 elements or more", to_string());
  return product;
}

Shape Shape::with_dim(int axis, std::int64_t value) const {
  dim(axis);
  std::vector<std::int64_t> dims = dims_;
  dims[axis < 0 ? axis + rank() : axis] = value;
  return Shape(std::move(dims));
}

bool Shape::is_compatible_with(const Shape& other) const {
  if (!has_rank_ || !other.has_rank_) return true;
  if (dims_.size() != other.dims_.size()) return false;
  for (std::size_t i = 0; i < dims_.size(); ++i)
    if (dims_[i] != -1 && other.dims_[i] != -1 && dims_[i] != other.dims_[i]) return false;
  return true;
}

Shape Shape::merged_with(const Shape& other) const {
  if (!is_compatible_with(other))
    throw InvalidArgumentError("shapes {} and {} are not compatible", to_string(), other.to_string());
  if (!has_rank_) return other;
  if (!other.has_rank_) return *this;
  std::vector<std::int64_t> dims = dims_;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] == -1) dims[i] = other.dims_[i];
  return Shape(std::move(dims));
}

std::string Shape::to_string() const {
  if (!has_rank_) return "<unknown>";
  std::string text = "[";
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    if (i > 0) text += ',';
    text += dims_[i] == -1 ? "?" : std::to_string(dims_[i]);
  }
  return text + "]";
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank()) return Shape::unknown_rank();
  const int n = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> dims(n);
  for (int i = 1; i <= n; ++i) {
    const std::int64_t x = i <= a.rank() ? a.dim(-i) : 1;
    const std::int64_t y = i <= b.rank() ? b.dim(-i) : 1;
    if (x == y || y == 1) dims[n - i] = x;
    else if (x == 1) dims[n - i] = y;
    else if (x == -1 || y == -1) dims[n - i] = std::max(x, y);
    else throw InvalidArgumentError("Incompatible shapes: {} vs. {}", a, b);
  }
  return Shape(std::move(dims));
}

}  // namespace kolo

fmt::format_context::iterator fmt::formatter<kolo::Shape>::format(const kolo::Shape& shape,
                                                                  fmt::format_context& context) const {
  return fmt::formatter<std::string_view>::format(shape.to_string(), context);
}
