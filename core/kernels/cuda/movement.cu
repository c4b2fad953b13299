// Kernels that move elements, or change their type, without computing.
#include <kolo/core/kernels/cuda/launch_elementwise.h>
#include <kolo/core/kernels/elements/cast.h>
#include <kolo/core/kernels/cuda/grid.cuh>

namespace kolo::cuda {
namespace {

template <typename Bits>
__global__ __launch_bounds__(kThreads) void fill_kernel(Bits* target, Bits value, std::int64_t elements) {
  for_each_element(elements, [=](std::int64_t i) { target[i] = value; });
}

template <typename Bits>
cudaError_t fill(cudaStream_t stream, const FillArguments& arguments) {
  fill_kernel<<<blocks_for(arguments.elements), kThreads, 0, stream>>>(
      static_cast<Bits*>(arguments.target), static_cast<Bits>(arguments.value_bits), arguments.elements);
  return cudaGetLastError();
}

template <typename Bits>
__global__ __launch_bounds__(kThreads) void select_kernel(const bool* condition, const Bits* a, const Bits* b,
                                                          Bits* y, const __grid_constant__ Walk<3> walk,
                                                          std::int64_t elements) {
  for_each_element(elements, [&](std::int64_t i) {
    const Offsets<3> offsets = offsets_at(walk, i);
    y[i] = condition[offsets.at[0]] ? a[offsets.at[1]] : b[offsets.at[2]];
  });
}

template <typename Bits>
cudaError_t select(cudaStream_t stream, const SelectArguments& arguments) {
  select_kernel<<<blocks_for(arguments.elements), kThreads, 0, stream>>>(
      arguments.condition, static_cast<const Bits*>(arguments.a), static_cast<const Bits*>(arguments.b),
      static_cast<Bits*>(arguments.y), arguments.walk, arguments.elements);
  return cudaGetLastError();
}

template <typename From, typename To>
__global__ __launch_bounds__(kThreads) void cast_kernel(const From* x, To* y, std::int64_t elements) {
  for_each_element(elements, [=](std::int64_t i) { y[i] = elements::Cast<To>()(x[i]); });
}

template <typename From, typename To>
cudaError_t cast(cudaStream_t stream, const CastArguments& arguments) {
  cast_kernel<<<blocks_for(arguments.elements), kThreads, 0, stream>>>(
      static_cast<const From*>(arguments.x), static_cast<To*>(arguments.y), arguments.elements);
  return cudaGetLastError();
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

__global__ __launch_bounds__(kThreads) void expand_kernel(const float* __restrict__ dy,
                                                          float* __restrict__ dx,
                                                          const __grid_constant__ Walk<1> walk,
                                                          std::int64_t elements, float divisor) {
  for_each_element(elements, [&](std::int64_t i) { dx[i] = dy[offsets_at(walk, i).at[0]] / divisor; });
}

}  // namespace

cudaError_t launch_fill(cudaStream_t stream, const FillArguments& arguments) {
  if (arguments.elements == 0) return cudaSuccess;  // a grid of no blocks is an error
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
  expand_kernel<<<blocks_for(arguments.elements), kThreads, 0, stream>>>(
      arguments.dy, arguments.dx, arguments.walk, arguments.elements, arguments.divisor);
  return cudaGetLastError();
}

}  // namespace kolo::cuda
