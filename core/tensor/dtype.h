// Element types, their sizes and the three spellings of their names.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kolo {

/// `boolean` is one byte, 0 or 1. `string` elements are std::string; such tensors live on the CPU only.
enum class DType : std::uint8_t { f32, f64, i32, i64, boolean, u8, i8, f16, bf16, string };

/// IEEE 754 binary16, as storage. Arithmetic is done in float.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  explicit operator float() const;
  bool operator==(const Half&) const = default;
};

/// The upper half of a float, as storage; rounds to nearest even.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const;
  bool operator==(const BFloat16&) const = default;
};

/// Bytes of one element; sizeof(std::string) for string.
std::size_t size_of(DType dtype);
bool is_floating(DType dtype);  // f32 f64 f16 bf16
bool is_integer(DType dtype);   // i32 i64 u8 i8

/// kolo's spelling, in the API, JSON and files: "f32", "i64", "bool", "bf16", "string".
const char* name(DType dtype);
/// TensorFlow's spelling in messages: "float", "double", "int32", "bool", "half", "bfloat16", "string".
const char* tf_name(DType dtype);
/// "DT_FLOAT", "DT_INT32", …
const char* tf_enum_name(DType dtype);
/// The collectives' spelling: "float32", "int64", "bool", "float16".
const char* numpy_name(DType dtype);
/// From kolo's spelling. Throws InvalidArgumentError naming the known ones.
DType dtype_from_name(std::string_view text);

/// DType of a C++ element type: dtype_of<float>() is f32.
template <typename T>
constexpr DType dtype_of();
// clang-format off
template <> constexpr DType dtype_of<float>() { return DType::f32; }
template <> constexpr DType dtype_of<double>() { return DType::f64; }
template <> constexpr DType dtype_of<std::int32_t>() { return DType::i32; }
template <> constexpr DType dtype_of<std::int64_t>() { return DType::i64; }
template <> constexpr DType dtype_of<bool>() { return DType::boolean; }
template <> constexpr DType dtype_of<std::uint8_t>() { return DType::u8; }
template <> constexpr DType dtype_of<std::int8_t>() { return DType::i8; }
template <> constexpr DType dtype_of<Half>() { return DType::f16; }
template <> constexpr DType dtype_of<BFloat16>() { return DType::bf16; }
template <> constexpr DType dtype_of<std::string>() { return DType::string; }
// clang-format on

}  // namespace kolo

template <>
struct fmt::formatter<kolo::DType> : fmt::formatter<std::string_view> {
  fmt::format_context::iterator format(kolo::DType dtype, fmt::format_context& context) const;
};
