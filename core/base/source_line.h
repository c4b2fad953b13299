// Where something stands in the source, for messages.
#pragma once

#include <cstring>
#include <string>

namespace kolo {

/// As a default argument, `SourceLine place = SourceLine::here()`: the line of the call. (SourceLine
/// says the same, but clang before 16 does not find it in GCC's library.)
struct SourceLine {
  const char* file = "";
  int line = 0;

  static constexpr SourceLine here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  /// `matmul_kernel.cc:12`
  std::string text() const {
    const char* const slash = std::strrchr(file, '/');
    std::string text = slash == nullptr ? file : slash + 1;
    text += ':';
    return text += std::to_string(line);
  }
};

}  // namespace kolo
