#include <kolo/core/base/csv_line.h>

#include <algorithm>

namespace kolo {
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

}  // namespace

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

}  // namespace kolo
