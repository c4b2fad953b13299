#include <kolo/core/tensor/tensor.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

std::size_t checked_bytes(DType dtype, const Shape& shape) {
  if (!shape.is_fully_known())
    throw InvalidArgumentError("a tensor needs a fully known shape, not {}", shape);
  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  bool empty = false;
  for (const std::int64_t dim : shape.dims()) {
    if (dim == 0) empty = true;
    else if (__builtin_mul_overflow(bytes, dim, &bytes))
      throw InvalidArgumentError("a tensor of {} with shape {} needs more than 2^63 bytes", dtype, shape);
  }
  return empty ? 0 : static_cast<std::size_t>(bytes);
}

// A buffer of strings constructs and destroys its elements: it lives in a vector that the buffer keeps alive.
std::shared_ptr<Buffer> make_buffer(DType dtype, std::size_t bytes, Allocator& allocator) {
  if (dtype != DType::string) return std::make_shared<Buffer>(allocator, bytes);
  auto strings = std::make_shared<std::vector<std::string>>(bytes / sizeof(std::string));
  void* const block = strings->data();
  return std::make_shared<Buffer>(block, bytes, std::move(strings));
}

template <typename T>
std::string join(const Tensor& tensor, std::int64_t limit) {
  std::string text;
  const auto values = tensor.span<T>();
  for (std::int64_t i = 0; i < std::min(limit, tensor.elements()); ++i) {
    if (i > 0) text += ", ";
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      text += fmt::format("{}", static_cast<float>(values[i]));
    else text += fmt::format("{}", values[i]);
  }
  return text;
}

}  // namespace

Tensor::Tensor(DType dtype, const Shape& shape, Allocator& allocator)
    : Tensor(dtype, shape, make_buffer(dtype, checked_bytes(dtype, shape), allocator), 0) {}

Tensor::Tensor(DType dtype, const Shape& shape, std::shared_ptr<Buffer> buffer, std::size_t offset)
    : dtype_(dtype), shape_(shape), buffer_(std::move(buffer)) {
  const std::size_t bytes = checked_bytes(dtype, shape);
  if (offset > buffer_->bytes() || bytes > buffer_->bytes() - offset)
    throw InternalError("a view of {} bytes at {} reaches beyond its buffer of {} bytes", bytes, offset,
                        buffer_->bytes());
  elements_ = static_cast<std::int64_t>(bytes / size_of(dtype));
  data_ = buffer_->data() + offset;
}

template <typename T>
Tensor Tensor::of(const Shape& shape, std::span<const T> elements) {
  Tensor tensor(dtype_of<T>(), shape);
  if (tensor.elements() != static_cast<std::int64_t>(elements.size()))
    throw InvalidArgumentError("{} elements for a tensor of shape {}, which has {}", elements.size(), shape,
                               tensor.elements());
  std::copy(elements.begin(), elements.end(), tensor.data<T>());
  return tensor;
}

template Tensor Tensor::of(const Shape&, std::span<const float>);
template Tensor Tensor::of(const Shape&, std::span<const double>);
template Tensor Tensor::of(const Shape&, std::span<const std::int32_t>);
template Tensor Tensor::of(const Shape&, std::span<const std::int64_t>);
template Tensor Tensor::of(const Shape&, std::span<const bool>);
template Tensor Tensor::of(const Shape&, std::span<const std::uint8_t>);
template Tensor Tensor::of(const Shape&, std::span<const std::int8_t>);
template Tensor Tensor::of(const Shape&, std::span<const Half>);
template Tensor Tensor::of(const Shape&, std::span<const BFloat16>);
template Tensor Tensor::of(const Shape&, std::span<const std::string>);

Tensor Tensor::zeros(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  if (dtype != DType::string) std::memset(tensor.raw(), 0, tensor.bytes());
  return tensor;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  if (shape.elements() != elements_)
    throw InvalidArgumentError("a tensor of shape {} has {} elements and cannot be viewed as {}", shape_,
                               elements_, shape);
  Tensor view = *this;
  view.shape_ = shape;
  return view;
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  if (shape_.rank() == 0 || begin < 0 || begin > end || end > shape_.dim(0))
    throw InvalidArgumentError("rows [{}, {}) of a tensor of shape {}", begin, end, shape_);
  Tensor view = *this;
  view.shape_ = shape_.with_dim(0, end - begin);
  view.elements_ = view.shape_.elements();
  if (shape_.dim(0) > 0)
    view.data_ += bytes() / static_cast<std::size_t>(shape_.dim(0)) * static_cast<std::size_t>(begin);
  return view;
}

Tensor Tensor::clone() const {
  if (!buffer_) return *this;
  Tensor copy(dtype_, shape_);
  copy.copy_from(*this);
  return copy;
}

void Tensor::copy_from(const Tensor& source) const {
  if (source.dtype_ != dtype_ || source.elements_ != elements_)
    throw InvalidArgumentError("cannot copy {} {} into {} {}", source.dtype_, source.shape_, dtype_, shape_);
  if (dtype_ == DType::string) std::copy_n(source.data<std::string>(), elements_, data<std::string>());
  else if (elements_ > 0) std::memcpy(data_, source.data_, bytes());
}

void Tensor::check_dtype(DType asked) const {
  if (asked != dtype_) throw InvalidArgumentError("a tensor of {} was read as {}", dtype_, asked);
}

void Tensor::check_single() const {
  if (elements_ != 1)
    throw InvalidArgumentError("a tensor of shape {} has {} elements, not one", shape_, elements_);
}

std::string Tensor::to_string(std::int64_t limit) const {
  std::string elements;
  switch (dtype_) {
    case DType::f32: elements = join<float>(*this, limit); break;
    case DType::f64: elements = join<double>(*this, limit); break;
    case DType::i32: elements = join<std::int32_t>(*this, limit); break;
    case DType::i64: elements = join<std::int64_t>(*this, limit); break;
    case DType::boolean: elements = join<bool>(*this, limit); break;
    case DType::u8: elements = join<std::uint8_t>(*this, limit); break;
    case DType::i8: elements = join<std::int8_t>(*this, limit); break;
    case DType::f16: elements = join<Half>(*this, limit); break;
    case DType::bf16: elements = join<BFloat16>(*this, limit); break;
    case DType::string: elements = join<std::string>(*this, limit); break;
  }
  return fmt::format("{}{}: {}{}", dtype_, shape_, elements, elements_ > limit ? ", …" : "");
}

}  // namespace kolo
