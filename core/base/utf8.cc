#include <kolo/core/base/utf8.h>

#include <algorithm>

namespace kolo {
namespace {

constexpr std::size_t kLongest = 4;  // bytes of a character

unsigned byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
}

bool goes_on(unsigned byte) { return (byte & 0xC0U) == 0x80U; }

// Of a character, by its first byte; 0: none begins with it.
std::size_t announced(unsigned first) {
  if (first < 0x80) return 1;
  return first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const unsigned first = byte_at(text, at), second = byte_at(text, at + 1);
  const std::size_t length = announced(first);
  for (std::size_t i = 1; i < length; ++i)
    if (!goes_on(byte_at(text, at + i))) return 0;
  const bool is_overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool is_surrogate = first == 0xED && second > 0x9F, is_beyond = first == 0xF4 && second > 0x8F;
  return is_overlong || is_surrogate || is_beyond ? 0 : length;
}

std::string_view utf8_character(std::string_view text, std::size_t at) {
  std::size_t begin = at;
  while (begin > 0 && at - begin + 1 < kLongest && goes_on(byte_at(text, begin))) --begin;
  const std::size_t length = utf8_length(text, begin);
  return begin + length > at ? text.substr(begin, length) : text.substr(at, 1);
}

std::string_view utf8_prefix(std::string_view text, std::size_t bytes) {
  text = text.substr(0, bytes);
  for (std::size_t last = 1; last <= std::min(kLongest, text.size()); ++last) {
    const unsigned byte = byte_at(text, text.size() - last);
    if (goes_on(byte)) continue;
    if (announced(byte) > last) text.remove_suffix(last);
    break;
  }
  return text;
}

}  // namespace kolo
