#include <kolo/core/tensor/dtype.h>

#include <fmt/format.h>

#include <array>

#include <kolo/core/base/error.h>
#include <kolo/core/tensor/small_float.h>

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

Half::Half(float value) : bits(detail::half_bits(value)) {}
Half::operator float() const { return detail::float_of_half(bits); }
BFloat16::BFloat16(float value) : bits(detail::bfloat16_bits(value)) {}
BFloat16::operator float() const { return detail::float_of_bfloat16(bits); }

}  // namespace kolo

fmt::format_context::iterator fmt::formatter<kolo::DType>::format(kolo::DType dtype,
                                                                  fmt::format_context& context) const {
  return fmt::formatter<std::string_view>::format(kolo::name(dtype), context);
}
