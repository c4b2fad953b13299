#include <kolo/core/tensor/dtype.h>

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

struct Names {
  const char* kolo;
  const char* tf;
  const char* tf_enum;
  const char* numpy;
  std::size_t bytes;
};

constexpr std::array<Names, 10> kNames = {{
    {"f32", "float", "DT_FLOAT", "float32", 4},
    {"f64", "double", "DT_DOUBLE", "float64", 8},
    {"i32", "int32", "DT_INT32", "int32", 4},
    {"i64", "int64", "DT_INT64", "int64", 8},
    {"bool", "bool", "DT_BOOL", "bool", 1},
    {"u8", "uint8", "DT_UINT8", "uint8", 1},
    {"i8", "int8", "DT_INT8", "int8", 1},
    {"f16", "half", "DT_HALF", "float16", 2},
    {"bf16", "bfloat16", "DT_BFLOAT16", "bfloat16", 2},
    {"string", "string", "DT_STRING", "string", sizeof(std::string)},
}};

const Names& names(DType dtype) { return kNames.at(static_cast<std::size_t>(dtype)); }

}  // namespace

std::size_t size_of(DType dtype) { return names(dtype).bytes; }
bool is_floating(DType d) {
  return d == DType::f32 || d == DType::f64 || d == DType::f16 || d == DType::bf16;
}
bool is_integer(DType d) { return d == DType::i32 || d == DType::i64 || d == DType::u8 || d == DType::i8; }
const char* name(DType dtype) { return names(dtype).kolo; }
const char* tf_name(DType dtype) { return names(dtype).tf; }
const char* tf_enum_name(DType dtype) { return names(dtype).tf_enum; }
const char* numpy_name(DType dtype) { return names(dtype).numpy; }

DType dtype_from_name(std::string_view text) {
  std::string known;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (text == kNames[i].kolo) return static_cast<DType>(i);
    known += (i == 0 ? "" : ", ") + std::string(kNames[i].kolo);
  }
  throw InvalidArgumentError("\"{}\" is not a data type; known: {}", text, known);
}

// Round to nearest even by way of the float's bits; subnormals, infinities and NaN included.
Half::Half(float value) {
  const std::uint32_t f = std::bit_cast<std::uint32_t>(value);
  const std::uint16_t sign = static_cast<std::uint16_t>(f >> 16 & 0x8000);
  const std::uint32_t magnitude = f & 0x7fffffff;
  if (magnitude > 0x7f800000) {
    bits = sign | 0x7e00;
  } else if (magnitude >= 0x477ff000) {  // 65520 and more round to infinity
    bits = sign | 0x7c00;
  } else if (magnitude >= 0x38800000) {
    const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    bits = static_cast<std::uint16_t>(sign | ((rounded - 0x38000000) >> 13));
  } else {
    // Subnormal: adding 0.5 lets the float unit round at the right place.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    bits = static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000));
  }
}

Half::operator float() const {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1f;
  const std::uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
  return sign == 0 ? subnormal : -subnormal;
}

BFloat16::BFloat16(float value) {
  const std::uint32_t f = std::bit_cast<std::uint32_t>(value);
  const bool nan = (f & 0x7fffffff) > 0x7f800000;
  bits = static_cast<std::uint16_t>(nan ? (f >> 16 | 0x40) : (f + 0x7fff + (f >> 16 & 1)) >> 16);
}

BFloat16::operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace kolo

fmt::format_context::iterator fmt::formatter<kolo::DType>::format(kolo::DType dtype,
                                                                  fmt::format_context& context) const {
  return fmt::formatter<std::string_view>::format(kolo::name(dtype), context);
}
