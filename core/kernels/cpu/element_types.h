// From an element type that is known at run time to one that the compiler knows.
#pragma once

#include <cstdint>
#include <type_traits>

#include <kolo/core/base/error.h>
#include <kolo/core/tensor/dtype.h>

namespace kolo::detail {

/// Stands for T where a value would be too much.
template <typename T>
struct TypeTag {
  using type = T;
};

/// Calls body(TypeTag<T>()) with the C++ type of `dtype`; any but string.
template <typename Body>
void with_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f32: return body(TypeTag<float>());
    case DType::f64: return body(TypeTag<double>());
    case DType::i32: return body(TypeTag<std::int32_t>());
    case DType::i64: return body(TypeTag<std::int64_t>());
    case DType::boolean: return body(TypeTag<bool>());
    case DType::u8: return body(TypeTag<std::uint8_t>());
    case DType::i8: return body(TypeTag<std::int8_t>());
    case DType::f16: return body(TypeTag<Half>());
    case DType::bf16: return body(TypeTag<BFloat16>());
    case DType::string: break;
  }
  throw InternalError("a kernel for numbers was given a tensor of {}", dtype);
}

template <typename T>
inline constexpr bool kIsSmallFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// The type in which elements are computed with: float for the two that are storage only.
template <typename T>
using Computed = std::conditional_t<kIsSmallFloat<T>, float, T>;

}  // namespace kolo::detail
