// A typed, shaped, reference-counted block of memory. Copies are cheap and share the elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/core/tensor/allocator.h>
#include <kolo/core/tensor/dtype.h>
#include <kolo/core/tensor/shape.h>

namespace kolo {

/// Row-major, dense. A copy shares the elements; clone() does not. Reading from several threads is safe,
/// writing needs the writer's own order. A default-constructed tensor is empty: it has no buffer.
class Tensor {
 public:
  Tensor() = default;
  /// Uninitialised (strings: empty). Throws InvalidArgumentError unless the shape is fully known and its
  /// bytes fit in 63 bits, ResourceExhaustedError if there is no memory.
  Tensor(DType dtype, const Shape& shape, Allocator& allocator = cpu_allocator());
  /// A view of `buffer` from `offset` bytes on; the bytes must lie inside it. Not for strings.
  Tensor(DType dtype, const Shape& shape, std::shared_ptr<Buffer> buffer, std::size_t offset);

  /// Elements row by row: Tensor::of<float>({2, 2}, {1, 2, 3, 4}).
  /// Throws InvalidArgumentError if their number is wrong.
  template <typename T>
  static Tensor of(const Shape& shape, std::initializer_list<T> elements) {
    return of(shape, std::span<const T>(elements.begin(), elements.size()));
  }
  template <typename T>
  static Tensor of(const Shape& shape, std::span<const T> elements);
  template <typename T>
  static Tensor scalar(T value) {
    return of(Shape(), std::span<const T>(&value, 1));
  }
  static Tensor zeros(DType dtype, const Shape& shape);

  explicit operator bool() const { return buffer_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t elements() const { return elements_; }
  std::size_t bytes() const { return static_cast<std::size_t>(elements_) * size_of(dtype_); }
  std::byte* raw() const { return data_; }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }

  /// The elements. Throws InvalidArgumentError if T is not the tensor's type.
  template <typename T>
  T* data() const {
    check_dtype(dtype_of<T>());
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  std::span<T> span() const {
    return {data<T>(), static_cast<std::size_t>(elements_)};
  }
  /// The only element. Throws InvalidArgumentError unless there is exactly one.
  template <typename T>
  T value() const {
    check_single();
    return *data<T>();
  }

  /// Views that share the elements. reshaped throws InvalidArgumentError if the number of elements differs;
  /// rows(begin, end) are rows [begin, end) of dimension 0, and throws it if there are no such rows.
  Tensor reshaped(const Shape& shape) const;
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  /// A copy with elements of its own.
  Tensor clone() const;
  /// Copies the elements of `source`, which has the same type and number of elements.
  void copy_from(const Tensor& source) const;
  /// For messages and logs: at most `limit` elements.
  std::string to_string(std::int64_t limit = 8) const;

 private:
  void check_dtype(DType asked) const;
  void check_single() const;

  DType dtype_ = DType::f32;
  Shape shape_{0};
  std::int64_t elements_ = 0;
  std::byte* data_ = nullptr;
  std::shared_ptr<Buffer> buffer_;
};

}  // namespace kolo
