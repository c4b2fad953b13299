#include <kolo/models/csv_fields.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/core/base/utf8.h>

namespace kolo::models::detail {
namespace {

// Of a number beyond the range of doubles: whether it is too small for it, not too large.
bool is_below_one(std::string_view field) {
  const std::size_t exponent = field.find_first_of("eE");
  if (exponent != std::string_view::npos) return field.substr(exponent + 1).starts_with('-');
  return field.find('.') < field.find_first_of("123456789");
}

std::optional<double> with_point(std::string_view field) {
  double value = 0;
  if (!field.empty() && field.front() == '+') field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error == std::errc::result_out_of_range) value = is_below_one(field) ? 0 : HUGE_VAL;
  else if (error != std::errc()) return std::nullopt;
  if (end != field.data() + field.size() || field.empty()) return std::nullopt;
  if (!(std::abs(value) <= std::numeric_limits<float>::max())) return std::nullopt;
  return value;
}

}  // namespace

void check_utf8(const std::string& name, std::string_view text, char line_end) {
  if (is_utf16(text)) throw InvalidArgumentError("{}: it is UTF-16; save the table as UTF-8", name);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0)
      throw InvalidArgumentError(
          "{}, line {}: it is not UTF-8; save the table as UTF-8", name,
          1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), line_end));
    at += length;
  }
}

char separator_of(std::string_view line) {
  std::array<std::size_t, 3> counts{};
  constexpr std::string_view kSeparators = "\t;,";
  bool is_quoted = false;
  for (const char character : line) {
    is_quoted ^= character == '"';
    const std::size_t which = kSeparators.find(character);
    if (!is_quoted && which < kSeparators.size()) ++counts[which];
  }
  // Of 1,5;2,5 the commas are decimal ones, although there are more of them.
  std::vector<std::string_view> fields;
  for (std::size_t i = 0; i < 2; ++i) {
    if (counts[i] == 0) continue;
    split_fields(line, kSeparators[i], fields);
    const bool is_it = std::all_of(fields.begin(), fields.end(), [](std::string_view field) {
      return field.find(',') == std::string_view::npos || may_be_number(field);
    });
    if (is_it) return kSeparators[i];
  }
  const auto most = std::max_element(counts.rbegin(), counts.rend());
  return kSeparators[static_cast<std::size_t>(counts.rend() - most) - 1];
}

std::optional<double> number_in(std::string_view field, bool decimal_comma) {
  if (!decimal_comma) return with_point(field);
  const std::size_t point = field.find('.'), comma = field.find(',');
  if (point == std::string_view::npos && comma == std::string_view::npos) return with_point(field);
  if (point != std::string_view::npos &&
      (comma != std::string_view::npos || field.find('.', point + 1) != std::string_view::npos))
    return is_grouped_by('.', field) ? number_with_thousands('.', field) : std::nullopt;
  std::string pointed(field);
  if (comma != std::string_view::npos) pointed[comma] = '.';
  return with_point(pointed);
}

bool is_grouped_by(char mark, std::string_view field) {
  const auto are_digits = [](std::string_view part) {
    return std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (field.starts_with('-') || field.starts_with('+')) field.remove_prefix(1);
  const std::size_t decimal = std::min(field.find(mark == '.' ? ',' : '.'), field.size());
  if (decimal < field.size() && !are_digits(field.substr(decimal + 1))) return false;
  field = field.substr(0, decimal);
  std::size_t end = field.find(mark);
  if (end < 1 || end > 3 || field.starts_with('0') || !are_digits(field.substr(0, end))) return false;
  for (; end < field.size(); end += 4)
    if (field[end] != mark || field.size() < end + 4 || !are_digits(field.substr(end + 1, 3))) return false;
  return true;
}

std::optional<double> number_with_thousands(char mark, std::string_view field) {
  if (!is_grouped_by(mark, field)) return number_in(field, mark == '.');
  std::string plain;
  for (const char c : field)
    if (c != mark) plain += c == ',' ? '.' : c;
  return with_point(plain);
}

bool may_be_number(std::string_view field) { return number_in(field, true) || is_grouped_by(',', field); }

bool is_out_of_range(std::string_view field) {
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  return error != std::errc::invalid_argument && end == field.data() + field.size() && !std::isnan(value);
}

bool is_empty_cell(std::string_view field) {
  for (const std::string_view empty : {"na", "n/a", "nan", "null", "?"})
    if (is_same_name(field, empty)) return true;
  return field.empty();
}

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t border = std::min(text.find(separator, begin), text.size());
    std::size_t end = border;
    while (begin < end && (text[begin] == ' ' || text[begin] == '\t')) ++begin;
    while (begin < end && (text[end - 1] == ' ' || text[end - 1] == '\t')) --end;
    if (begin < end) parts.emplace_back(text.substr(begin, end - begin));
    begin = border + 1;
  }
  return parts;
}

bool is_same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower_case(x) == lower_case(y); });
}

}  // namespace kolo::models::detail
