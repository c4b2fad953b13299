// A file of comma-separated values, line by line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/core/base/csv_line.h>
#include <kolo/core/base/input_file.h>
#include <kolo/models/csv_fields.h>

namespace kolo::models::detail {

using Fields = std::vector<std::string_view>;

/// A file in memory, line by line.
class CsvFile {
 public:
  explicit CsvFile(const std::filesystem::path& path)
      : name_(path.string()), text_(InputFile(name_).read_all(kMostBytes)) {
    if (text_.starts_with("\xef\xbb\xbf")) begin_ = 3;  // as spreadsheets begin UTF-8
    check_utf8(name_, text_);
    rewind();
    std::string_view first;
    if (next_line(first)) separator_ = separator_of(first);
    rewind();
  }

  void rewind() { at_ = begin_, line_ = 0; }
  /// The next line that is not empty; false at the end.
  bool next(Fields& fields) {
    std::string_view line;
    if (!next_line(line)) return false;
    split_fields(line, separator_, fields);
    return true;
  }
  const std::string& name() const { return name_; }
  std::int64_t line() const { return line_; }  // of the fields that next() gave
  char separator() const { return separator_; }

  bool has_names = false;
  std::size_t columns = 0;
  std::vector<std::size_t> places;  // of each feature
  std::vector<std::size_t> labels;  // of each label; empty: the file has none

 private:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 36;  // what is read whole

  bool next_line(std::string_view& line) {
    const std::string_view text = text_;
    while (at_ < text.size()) {
      const std::size_t end = std::min(text.find('\n', at_), text.size());
      line = text.substr(at_, end - at_);
      at_ = end + 1;
      ++line_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.find_first_not_of(" \t") != std::string_view::npos) return true;
    }
    return false;
  }

  std::string name_, text_;
  std::size_t begin_ = 0, at_ = 0;
  std::int64_t line_ = 0;
  char separator_ = ',';
};

}  // namespace kolo::models::detail
