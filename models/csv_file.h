// A file of comma-separated values, row by row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::models::detail {

using Fields = std::vector<std::string_view>;

/// A file in memory, row by row. A row is a line, or several where a quoted field has line breaks. Lines end
/// in LF, CRLF, or, where the file has no LF, CR. A first line `sep=;`, as Excel knows it, names the
/// separator and is no row.
class CsvFile {
 public:
  /// Throws InvalidArgumentError for what is not UTF-8 and for a separator that is none of , ; and tab, and
  /// what InputFile throws.
  explicit CsvFile(const std::filesystem::path& path);

  void rewind();
  /// The next row that is not empty; false at the end.
  bool next(Fields& fields);
  /// Throws InvalidArgumentError, with the line, where the row has not as many fields as `columns`.
  void check_columns(const Fields& fields) const;
  const std::string& name() const { return name_; }
  std::int64_t line() const { return row_line_; }        // in which the row of next() begins,
  std::int64_t last_line() const { return last_line_; }  // and in which it ends
  char separator() const { return separator_; }

  bool has_names = false;
  std::size_t columns = 0;
  std::vector<std::size_t> places;  // of each feature
  std::vector<std::size_t> labels;  // of each label; empty: the file has none

 private:
  bool next_row(std::string_view& row, std::string_view separators);
  std::size_t end_of_row(std::size_t begin, std::size_t end, std::string_view separators);

  std::string name_, text_;
  std::size_t begin_ = 0, at_ = 0;
  std::int64_t lines_before_ = 0;              // what begins at begin_
  std::int64_t row_line_ = 0, last_line_ = 0;  // of the row, from 1 on
  char line_end_ = '\n', separator_ = ',';
};

}  // namespace kolo::models::detail
