// Names as Keras makes them, and its texts for those that it does not know.
#pragma once

#include <string>
#include <vector>

#include <kolo/core/tensor/shape.h>

namespace kolo::keras::detail {

/// "MaxPooling2D" → "max_pooling2d", "LeakyReLU" → "leaky_re_lu".
std::string snake_case(const std::string& class_name);
/// `Unknown <kind>: <name>`, with the nearest known one.
std::string unknown_text(const std::string& kind, const std::string& name,
                         const std::vector<std::string>& known);
/// "(None, 32)", "(784,)", "()".
std::string shape_text(const Shape& shape);
/// "['a', 'b']".
std::string list_text(const std::vector<std::string>& items);

template <typename Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return keys;
}

}  // namespace kolo::keras::detail
