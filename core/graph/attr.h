// The attributes of a node: what is fixed when the node is made and is no tensor input.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

/// A value: one of bool, whole number, real number, text, DType, Shape, Tensor, or a list of numbers or
/// texts.
class AttrValue {
 public:
  using Value = std::variant<bool, std::int64_t, double, std::string, DType, Shape, Tensor,
                             std::vector<std::int64_t>, std::vector<std::string>>;

  AttrValue(bool value) : value_(value) {}
  template <typename Number>
  requires(std::is_integral_v<Number> && !std::is_same_v<Number, bool>) AttrValue(Number value)
      : value_(static_cast<std::int64_t>(value)) {}
  AttrValue(float value) : value_(static_cast<double>(value)) {}
  AttrValue(double value) : value_(value) {}
  AttrValue(const char* value) : value_(std::string(value)) {}
  AttrValue(std::string value) : value_(std::move(value)) {}
  AttrValue(DType value) : value_(value) {}
  AttrValue(Shape value) : value_(std::move(value)) {}
  AttrValue(Tensor value) : value_(std::move(value)) {}
  AttrValue(std::vector<std::int64_t> value) : value_(std::move(value)) {}
  AttrValue(std::vector<std::string> value) : value_(std::move(value)) {}

  /// T: bool, any integer, float, double, std::string, DType, Shape, Tensor, vector of int64 or string.
  /// Throws InvalidArgumentError if the attribute is of another kind.
  template <typename T>
  T get() const {
    using Number = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
    using Stored = std::conditional_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, Number, T>;
    if (const Stored* stored = std::get_if<Stored>(&value_)) return static_cast<T>(*stored);
    throw InvalidArgumentError("an attribute of kind {} was read as another kind", kind());
  }
  /// "bool", "int", "float", "string", "type", "shape", "tensor", "list(int)", "list(string)".
  const char* kind() const;
  const Value& value() const { return value_; }
  /// Equal kind and value; tensors by type, shape and bytes.
  bool operator==(const AttrValue& other) const;

 private:
  Value value_;
};

using AttrMap = std::map<std::string, AttrValue>;

}  // namespace kolo
