// How messages list variables.
#pragma once

#include <span>
#include <string>

#include <kolo/optimizer/optimizer.h>

namespace kolo::detail {

/// ["fc1/w", "fc1/b"].
inline std::string variable_list(std::span<const GradientPair> pairs) {
  std::string text;
  for (const GradientPair& pair : pairs) text += (text.empty() ? "\"" : ", \"") + pair.variable.name() + '"';
  return '[' + text + ']';
}

}  // namespace kolo::detail
