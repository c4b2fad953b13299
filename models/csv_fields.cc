#include <kolo/models/csv_fields.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace kolo::models::detail {
namespace {

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::string_view without_quotes(std::string_view field) {
  field = without_blanks(field);
  const bool is_quoted = field.size() >= 2 && field.front() == '"' && field.back() == '"';
  return is_quoted ? without_blanks(field.substr(1, field.size() - 2)) : field;
}

// Of the quote that ends what the one at `open` begins; the line's size where there is none.
std::size_t closing_quote(std::string_view line, std::size_t open) {
  for (std::size_t at = line.find('"', open + 1); at < line.size(); at = line.find('"', at + 2))
    if (at + 1 == line.size() || line[at + 1] != '"') return at;
  return line.size();
}

std::size_t end_of_field(std::string_view line, char separator, std::size_t begin) {
  const std::size_t end = std::min(line.find(separator, begin), line.size());
  std::size_t first = begin;
  while (first < end && line[first] == ' ') ++first;
  if (first >= line.size() || line[first] != '"') return end;
  const std::size_t closing = closing_quote(line, first);
  return closing < line.size() ? std::min(line.find(separator, closing), line.size()) : end;
}

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

void split_fields(std::string_view line, char separator, std::vector<std::string_view>& fields) {
  fields.clear();
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = end_of_field(line, separator, begin);
    fields.push_back(without_quotes(line.substr(begin, end - begin)));
    begin = end + 1;
  }
}

std::string unquoted(std::string_view field) {
  std::string words(field);
  for (std::size_t at = words.find("\"\""); at != std::string::npos; at = words.find("\"\"", at + 1))
    words.erase(at, 1);
  return words;
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

bool is_same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char letter) { return std::tolower(static_cast<unsigned char>(letter)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace kolo::models::detail
