// UTF-8 (RFC 3629): where characters begin and end.
#pragma once

#include <cstddef>
#include <string_view>

namespace kolo {

/// Whether a text begins with the mark of UTF-16, in either order of its bytes.
inline bool is_utf16(std::string_view text) {
  return text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
}

/// Bytes of the character that begins at `at`; 0 for what is none.
std::size_t utf8_length(std::string_view text, std::size_t at);

/// The character of which the byte at `at` is a part; of text that is not UTF-8 there this byte alone.
std::string_view utf8_character(std::string_view text, std::size_t at);

/// The first `bytes` bytes, without a character at their end of which some bytes are missing.
std::string_view utf8_prefix(std::string_view text, std::size_t bytes = std::string_view::npos);

}  // namespace kolo
