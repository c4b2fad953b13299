#include <kolo/models/csv_fields.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/text.h>

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
      return field.find(',') == std::string_view::npos || number_in(field, true);
    });
    if (is_it) return kSeparators[i];
  }
  const auto most = std::max_element(counts.rbegin(), counts.rend());
  return kSeparators[static_cast<std::size_t>(counts.rend() - most) - 1];
}

std::optional<double> number_in(std::string_view field, bool decimal_comma) {
  const std::size_t comma = decimal_comma ? field.find(',') : std::string_view::npos;
  if (comma == std::string_view::npos) return with_point(field);
  if (field.find('.') != std::string_view::npos) return std::nullopt;
  std::string pointed(field);
  pointed[comma] = '.';
  return with_point(pointed);
}

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

std::vector<std::string> parts_between_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

std::vector<std::string> parts_between_bars(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t bar = std::min(text.find('|', begin), text.size());
    std::size_t end = bar;
    while (begin < end && (text[begin] == ' ' || text[begin] == '\t')) ++begin;
    while (begin < end && (text[end - 1] == ' ' || text[end - 1] == '\t')) --end;
    if (begin < end) parts.emplace_back(text.substr(begin, end - begin));
    begin = bar + 1;
  }
  return parts;
}

bool is_same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower_case(x) == lower_case(y); });
}

}  // namespace kolo::models::detail
