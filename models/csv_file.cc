#include <kolo/models/csv_file.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/models/csv_fields.h>

namespace kolo::models::detail {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 36;  // what is read whole
constexpr std::string_view kSeparators = ",;\t";

// `sep=;`, as Excel writes and reads it in front of a table.
std::optional<char> separator_named(const CsvFile& file, std::string_view row) {
  if (row.size() >= 2 && row.front() == '"' && row.back() == '"') row = row.substr(1, row.size() - 2);
  if (row.size() != 5 || !is_same_name(row.substr(0, 4), "sep=")) return std::nullopt;
  if (kSeparators.find(row.back()) == std::string_view::npos)
    throw InvalidArgumentError(
        "{}, line {}: {:?} names what separates the fields; it must be a comma, a semicolon or a tab",
        file.name(), file.line(), row);
  return row.back();
}

}  // namespace

CsvFile::CsvFile(const std::filesystem::path& path)
    : name_(path.string()), text_(InputFile(name_).read_all(kMostBytes)) {
  if (text_.starts_with("\xef\xbb\xbf")) begin_ = 3;  // as spreadsheets begin UTF-8
  if (text_.find('\n') == std::string::npos) line_end_ = '\r';
  check_utf8(name_, text_, line_end_);
  rewind();
  std::string_view first;
  if (next_row(first, kSeparators)) {
    if (const auto named = separator_named(*this, first)) {
      separator_ = *named;
      begin_ = at_, lines_before_ = last_line_;
    } else {
      separator_ = separator_of(first);
    }
  }
  rewind();
}

void CsvFile::rewind() { at_ = begin_, row_line_ = last_line_ = lines_before_; }

bool CsvFile::next(Fields& fields) {
  std::string_view row;
  if (!next_row(row, {&separator_, 1})) return false;
  split_fields(row, separator_, fields);
  return true;
}

bool CsvFile::next_row(std::string_view& row, std::string_view separators) {
  const std::string_view text = text_;
  while (at_ < text.size()) {
    row_line_ = ++last_line_;
    std::size_t end = std::min(text.find(line_end_, at_), text.size());
    if (text.substr(at_, end - at_).find('"') != std::string_view::npos)
      end = end_of_row(at_, end, separators);
    row = text.substr(at_, end - at_);
    at_ = end + 1;
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (row.find_first_not_of(" \t") != std::string_view::npos) return true;
  }
  return false;
}

// Of a row whose first line ends at `end`. A quote that no later one closes is a letter, and so is one that
// is closed in the middle of a field: else a single quote too many would swallow half of the file.
std::size_t CsvFile::end_of_row(std::size_t begin, std::size_t end, std::string_view separators) {
  const std::string_view text = text_;
  while (true) {
    const std::size_t open = open_quote(text.substr(begin, end - begin), separators);
    if (open == std::string_view::npos) return end;
    const std::size_t closing = closing_quote(text, begin + open);
    if (closing == std::string_view::npos) return end;
    const std::size_t behind = std::min(text.find_first_not_of(' ', closing + 1), text.size());
    const bool ends_field = behind == text.size() ||
                            separators.find(text[behind]) != std::string_view::npos ||
                            std::string_view("\r\n\t").find(text[behind]) != std::string_view::npos;
    if (!ends_field) return end;
    last_line_ += std::count(text.begin() + static_cast<std::ptrdiff_t>(end),
                             text.begin() + static_cast<std::ptrdiff_t>(closing), line_end_);
    end = std::min(text.find(line_end_, closing), text.size());
  }
}

void CsvFile::check_columns(const Fields& fields) const {
  if (fields.size() == columns) return;
  const std::string lines = last_line_ == row_line_
                                ? fmt::format("line {}", row_line_)
                                : fmt::format("lines {} to {}, which quotes join", row_line_, last_line_);
  const bool has_open = std::any_of(fields.begin(), fields.end(),
                                    [](std::string_view field) { return field.starts_with('"'); });
  const std::string separator =
      separator_ == '\t' ? "a tab" : fmt::format("{:?}", std::string(1, separator_));
  throw InvalidArgumentError(
      "{}, {}: {}; the first line has {}{}", name_, lines, count_of(fields.size(), "column"), columns,
      has_open                  ? ", and here a quote begins a field that none ends"
      : fields.size() > columns ? fmt::format("; a field with {} in it must be in quotes", separator)
                                : "; each must have as many, and an empty one stands between two separators");
}

}  // namespace kolo::models::detail
