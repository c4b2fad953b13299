#include <cstring>

#include <kolo/core/kernels/cuda/launch_elementwise.h>
#include <kolo/core/kernels/elements/cast.h>

#include "../launches.h"
#include "walk.h"

namespace kolo::cuda {
namespace {

using fake_cuda::device_read;
using fake_cuda::device_write;
using fake_cuda::launch;

template <typename Bits>
cudaError_t fill(cudaStream_t stream, const FillArguments& arguments) {
  Bits* const target = device_write<Bits>(arguments.target, arguments.elements);
  return launch("fill", stream,
                [=] { std::fill_n(target, arguments.elements, static_cast<Bits>(arguments.value_bits)); });
}

template <typename Bits>
cudaError_t select(cudaStream_t stream, const SelectArguments& arguments) {
  const auto elements = arguments.elements;
  const auto walk = arguments.walk;
  const bool* const condition = device_read<bool>(arguments.condition, fake_cuda::extent(walk, 0));
  const Bits* const a = device_read<Bits>(arguments.a, fake_cuda::extent(walk, 1));
  const Bits* const b = device_read<Bits>(arguments.b, fake_cuda::extent(walk, 2));
  Bits* const y = device_write<Bits>(arguments.y, elements);
  return launch("select", stream, [=] {
    for (std::int64_t i = 0; i < elements; ++i) {
      const auto at = fake_cuda::offsets(walk, i);
      y[i] = condition[at[0]] ? a[at[1]] : b[at[2]];
    }
  });
}

template <typename From, typename To>
cudaError_t cast(cudaStream_t stream, const CastArguments& arguments) {
  const auto elements = arguments.elements;
  const From* const x = device_read<From>(arguments.x, elements);
  To* const y = device_write<To>(arguments.y, elements);
  return launch("cast", stream, [=] {
    for (std::int64_t i = 0; i < elements; ++i) y[i] = elements::Cast<To>()(x[i]);
  });
}

template <typename From>
cudaError_t cast_from(cudaStream_t stream, const CastArguments& arguments) {
  switch (arguments.to) {
    case ElementType::f32: return cast<From, float>(stream, arguments);
    case ElementType::f64: return cast<From, double>(stream, arguments);
    case ElementType::i32: return cast<From, std::int32_t>(stream, arguments);
    case ElementType::i64: return cast<From, std::int64_t>(stream, arguments);
    case ElementType::u8: return cast<From, std::uint8_t>(stream, arguments);
    case ElementType::boolean: return cast<From, bool>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t launch_fill(cudaStream_t stream, const FillArguments& arguments) {
  if (arguments.elements == 0) return cudaSuccess;
  switch (arguments.bytes_per_element) {
    case 1: return fill<std::uint8_t>(stream, arguments);
    case 2: return fill<std::uint16_t>(stream, arguments);
    case 4: return fill<std::uint32_t>(stream, arguments);
    case 8: return fill<std::uint64_t>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t launch_select(cudaStream_t stream, const SelectArguments& arguments) {
  if (arguments.elements == 0) return cudaSuccess;
  switch (arguments.bytes_per_element) {
    case 1: return select<std::uint8_t>(stream, arguments);
    case 2: return select<std::uint16_t>(stream, arguments);
    case 4: return select<std::uint32_t>(stream, arguments);
    case 8: return select<std::uint64_t>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t launch_cast(cudaStream_t stream, const CastArguments& arguments) {
  if (arguments.elements == 0) return cudaSuccess;
  switch (arguments.from) {
    case ElementType::f32: return cast_from<float>(stream, arguments);
    case ElementType::f64: return cast_from<double>(stream, arguments);
    case ElementType::i32: return cast_from<std::int32_t>(stream, arguments);
    case ElementType::i64: return cast_from<std::int64_t>(stream, arguments);
    case ElementType::u8: return cast_from<std::uint8_t>(stream, arguments);
    case ElementType::boolean: return cast_from<bool>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t launch_expand(cudaStream_t stream, const ExpandArguments& arguments) {
  if (arguments.elements == 0) return cudaSuccess;
  const float* const dy = device_read<float>(arguments.dy, fake_cuda::extent(arguments.walk, 0));
  float* const dx = device_write<float>(arguments.dx, arguments.elements);
  return launch("expand", stream, [=] {
    for (std::int64_t i = 0; i < arguments.elements; ++i)
      dx[i] = dy[fake_cuda::offsets(arguments.walk, i)[0]] / arguments.divisor;
  });
}

}  // namespace kolo::cuda
