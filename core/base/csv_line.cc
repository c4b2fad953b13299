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
  std::string words;
  for (std::size_t at = 0; at < field.size(); ++at) {
    const std::string_view two = field.substr(at, 2);
    if (two == "\"\"" || two == "\r\n") ++at;
    words += field[at] == '\n' || field[at] == '\r' ? ' ' : field[at];
  }
  return words;
}

std::size_t closing_quote(std::string_view text, std::size_t open) {
  for (std::size_t at = text.find('"', open + 1); at < text.size(); at = text.find('"', at + 2))
    if (at + 1 == text.size() || text[at + 1] != '"') return at;
  return std::string_view::npos;
}

std::size_t open_quote(std::string_view line, std::string_view separators) {
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t first = line.find_first_not_of(' ', begin);
    if (first == std::string_view::npos) break;
    std::size_t in_field = first;
    if (line[first] == '"') in_field = closing_quote(line, first);
    if (in_field == std::string_view::npos) return first;
    begin = std::min(line.find_first_of(separators, in_field), line.size()) + 1;
  }
  return std::string_view::npos;
}

std::vector<std::string> names_in(std::string_view line) {
  std::vector<std::string_view> fields;
  split_fields(line, ',', fields);
  std::vector<std::string> names;
  for (const std::string_view field : fields)
    if (!field.empty()) names.push_back(unquoted(field));
  return names;
}

}  // namespace kolo
