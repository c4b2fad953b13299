// The words of a table's column as numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <kolo/models/csv_cells.h>
#include <kolo/models/csv_file.h>
#include <kolo/models/data.h>

namespace kolo::models::detail {

/// Cell by cell, in the order of the rows. A word's number is its place in the column's words.
class ColumnWords {
 public:
  struct Options {
    bool is_known = false;     // the column has its words already, and other words are unknown
    bool is_label = false;     // an unknown word is refused
    bool is_split = false;     // a cell holds several, with | between them
    std::string trained = {};  // the file of the known words, for messages; "": nobody knows it
  };
  /// column: outlives this.
  ColumnWords(TableColumn& column, const Options& options);

  /// The next row's cell, at this place of those that the file has just read. Throws InvalidArgumentError,
  /// with its line, for more than 1,000 words.
  void take(const CsvFile& file, std::size_t place, const Fields& fields);
  /// The next row is left out, and its word is none of the column's.
  void skip() { ends_.push_back(found_.size()); }
  /// Behind the last cell: the column gets its words, sorted, so that they do not depend on the order of the
  /// lines. Throws InvalidArgumentError for labels that are unknown: the first one's line, and how many there
  /// are.
  void finish();

  bool is_split() const { return options_.is_split; }
  /// Numbers of the words in a row's cell: none where it is empty or its word unknown.
  std::span<const std::int32_t> of_row(std::size_t row) const;
  /// `12 words in column 3 "size"`, or which words were unknown, and where the first of each stands.
  std::vector<std::string> notes(bool of_several_files) const;
  /// Of a column with almost as many words as rows, such as numbers of customers; of words that look like
  /// numbers, and of words that look alike. first_word: of the column.
  std::vector<std::string> warnings(const CellPlace& first_word) const;
  /// Of a later table's column most of whose words the training has not seen, as after a spreadsheet has made
  /// TRUE of True; "" of others, and of a label.
  std::string warning_of_unknown() const;

 private:
  void take_word(const CsvFile& file, std::size_t place, std::string word);
  void check_labels() const;
  std::string warning_of_many(const CellPlace& first_word) const;
  std::string warning_of_numbers(const CellPlace& first_word) const;
  [[noreturn]] void throw_too_many(const CsvFile& file) const;

  TableColumn& column_;
  Options options_;
  std::unordered_map<std::string, std::int32_t> numbers_;
  std::vector<std::int32_t> found_;  // in all cells
  std::vector<std::size_t> ends_;    // of each row, in them
  struct Unknown {
    std::int64_t count = 0;
    CellPlace first;
  };
  std::map<std::string, Unknown> unknown_;
  std::string first_unknown_;
};

}  // namespace kolo::models::detail
