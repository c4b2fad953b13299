#include <kolo/models/data.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include <kolo/core/base/error.h>
#include <kolo/models/samples_internal.h>

namespace kolo::models {
namespace {

template <typename From>
Tensor converted(const Tensor& x) {
  Tensor made(DType::f32, x.shape());
  const auto from = x.span<From>();
  std::transform(from.begin(), from.end(), made.data<float>(),
                 [](From value) { return static_cast<float>(value); });
  return made;
}

// Images of NumPy, Keras and OpenCV: [N,H,W,C], where no [N,C,H,W] is possible.
bool is_channels_last(const Shape& shape) {
  const auto is_channels = [](std::int64_t dim) { return dim == 1 || dim == 3; };
  return shape.rank() == 4 && is_channels(shape.dim(3)) && !is_channels(shape.dim(1));
}

template <typename T>
Tensor channels_first(const Tensor& x) {
  const std::int64_t count = x.shape().dim(0), pixels = x.shape().dim(1) * x.shape().dim(2),
                     channels = x.shape().dim(3);
  Tensor made(x.dtype(), {count, channels, x.shape().dim(1), x.shape().dim(2)});
  const T* const from = x.data<T>();
  T* const to = made.data<T>();
  for (std::int64_t n = 0; n < count; ++n)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t p = 0; p < pixels; ++p)
        to[(n * channels + c) * pixels + p] = from[(n * pixels + p) * channels + c];
  return made;
}

Tensor of_known_type(const std::filesystem::path& path) {
  Tensor x = read_npy(path);
  if (x.dtype() == DType::f64 || x.dtype() == DType::boolean) x = detail::as_f32(x);
  if (x.dtype() != DType::f32 && x.dtype() != DType::u8)
    throw InvalidArgumentError(
        "{}: samples {} {}; they must be f2, f4, f8, b1, or u1, which becomes 0 to 1; whole numbers of other "
        "types do not say what is 1 (numpy: x.astype)",
        path.string(), x.dtype(), x.shape());
  detail::check_finite(path.string(), x);
  return x;
}

NpySamples in_known_order(Tensor x) {
  NpySamples found{.x = std::move(x)};
  const Shape& shape = found.x.shape();
  if (shape.rank() == 3) found.x = found.x.reshaped({shape.dim(0), 1, shape.dim(1), shape.dim(2)});
  if (const Shape& images = found.x.shape(); images.rank() == 4 && !is_channels_last(images)) {
    const std::int64_t first = images.dim(1), last = images.dim(3);
    const bool may_be_last = (last == 2 || last == 4) && first > 4;
    if (may_be_last || (images.dim(2) <= 4 && first > 4 && last > 4))
      found.warning = fmt::format(
          "[N,{0},{1},{2}] is taken for images of {0} channels, {1} x {2}; channels stand in front (numpy: "
          "np.moveaxis(x, {3}, 1)), and of RGBA x[..., :3] takes the colours",
          first, images.dim(2), last, may_be_last ? 3 : 2);
  }
  if (!is_channels_last(found.x.shape())) return found;
  found.note =
      fmt::format("[N,{},{},{}] is taken as channels last", shape.dim(1), shape.dim(2), shape.dim(3));
  found.x =
      found.x.dtype() == DType::u8 ? channels_first<std::uint8_t>(found.x) : channels_first<float>(found.x);
  return found;
}

Shape batch_of(std::int64_t count, const Shape& sample) {
  std::vector<std::int64_t> dims = {count};
  dims.insert(dims.end(), sample.dims().begin(), sample.dims().end());
  return Shape(std::move(dims));
}

}  // namespace

NpySamples read_npy_samples(const std::filesystem::path& path) {
  Tensor x = of_known_type(path);
  if (x.shape().rank() < 2)
    throw InvalidArgumentError("{}: samples {} {}; they must be [N,...]", path.string(), x.dtype(),
                               x.shape());
  return in_known_order(std::move(x));
}

Tensor read_npy_samples(const std::filesystem::path& path, const Shape& sample) {
  Tensor x = of_known_type(path);
  const Shape given = x.shape();
  if (given.rank() == 2 && sample.rank() == 3 && sample.dim(0) == 1)
    x = x.reshaped({1, 1, given.dim(0), given.dim(1)});  // one picture of one channel
  if (given.rank() == sample.rank() && given != batch_of(given.dim(0), sample))
    if (given == sample ||
        (sample.rank() == 3 && given == Shape({sample.dim(1), sample.dim(2), sample.dim(0)})))
      x = x.reshaped(batch_of(1, given));
  x = in_known_order(std::move(x)).x;
  if (x.shape().rank() < 1 || x.shape() != batch_of(x.shape().dim(0), sample))
    throw InvalidArgumentError("{}: samples {}; the model takes {}", path.string(), given,
                               batch_of(-1, sample));
  return x;
}

}  // namespace kolo::models

namespace kolo::models::detail {

Tensor as_f32(const Tensor& x) {
  switch (x.dtype()) {
    case DType::f64: return converted<double>(x);
    case DType::boolean: return converted<bool>(x);
    case DType::i32: return converted<std::int32_t>(x);
    case DType::i64: return converted<std::int64_t>(x);
    case DType::u8: return converted<std::uint8_t>(x);
    default: return x;
  }
}

}  // namespace kolo::models::detail
