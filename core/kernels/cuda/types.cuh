// From what arguments say of types to types.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>
#include <kolo/core/kernels/elements/small_float.h>

namespace kolo::cuda {

template <typename T>
struct Tag {
  using type = T;
};

/// Calls run(Tag<unsigned number of so many bytes>).
template <typename Run>
cudaError_t with_bits(int bytes, const Run& run) {
  switch (bytes) {
    case 1: return run(Tag<std::uint8_t>());
    case 2: return run(Tag<std::uint16_t>());
    case 4: return run(Tag<std::uint32_t>());
    case 8: return run(Tag<std::uint64_t>());
    default: return cudaErrorInvalidValue;
  }
}

template <typename Run>
cudaError_t with_type(ElementType type, const Run& run) {
  switch (type) {
    case ElementType::f32: return run(Tag<float>());
    case ElementType::f64: return run(Tag<double>());
    case ElementType::i32: return run(Tag<std::int32_t>());
    case ElementType::i64: return run(Tag<std::int64_t>());
    case ElementType::boolean: return run(Tag<bool>());
    case ElementType::u8: return run(Tag<std::uint8_t>());
    case ElementType::i8: return run(Tag<std::int8_t>());
    case ElementType::f16: return run(Tag<elements::F16>());
    case ElementType::bf16: return run(Tag<elements::Bf16>());
  }
  return cudaErrorInvalidValue;
}

}  // namespace kolo::cuda
