// What the cells of a table's column are: numbers, words, or empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <kolo/models/csv_file.h>
#include <kolo/models/data.h>

namespace kolo::models::detail {

/// A cell that an error may name.
struct CellPlace {
  std::string file;  // "": there is none
  std::int64_t line = 0;
  std::size_t column = 0;  // from 0 on
  std::string text = {};   // its beginning
};

/// `line 7, column 2`, of several files with the file's name in front.
std::string place_text(const CellPlace& cell, bool of_several_files);

/// Counts of a column's cells. In a file with commas between its fields a number may have a decimal comma
/// too, within quotes, if all of the column's numbers agree: none has a point, and one comma at least is not
/// that of thousands. In other files 1.100 is 1.1, but 1100 where another number of the column is
/// as 1.100,50.
class ColumnCells {
 public:
  /// Adds the file's cell of its present row. Returns its number, if it is one, or may be one with a decimal
  /// comma.
  std::optional<double> add(const CsvFile& file, std::size_t column, std::string_view field);
  /// After the last cell: whether those with decimal commas are numbers or words, and whether points are
  /// those of thousands. known: an earlier table said so. Throws InvalidArgumentError where commas or points
  /// may be those of thousands.
  void finish(const TableColumn& known = {});

  std::int64_t numbers = 0, words = 0, empty = 0;
  std::int64_t bars = 0;              // words with | in them
  double sum = 0;                     // of the numbers
  bool has_decimal_commas = false;    // in a file with commas between its fields
  bool has_thousands_points = false;  // in other files: its numbers are those of number_with_thousands
  CellPlace first_word = {}, first_empty = {};

 private:
  void finish_points(bool is_known);
  void finish_commas(bool is_known);

  std::int64_t commas_ = 0;   // cells that are numbers with decimal commas, or with commas of thousands
  std::int64_t decimal_ = 0;  // of these the former only, as 0,5
  std::int64_t grouped_ = 0;  // the latter only, as 1,234,567
  std::int64_t points_ = 0;   // numbers with a decimal point
  double sum_of_commas_ = 0;
  CellPlace first_comma_ = {};
  // Of files with other separators:
  std::int64_t decimal_commas_ = 0;  // numbers as 1,5
  std::int64_t thousands_ = 0;       // as 1.100,5 or 1.234.567
  std::int64_t unclear_ = 0;         // as 1.100
  CellPlace first_thousands_ = {}, first_unclear_ = {};
};

/// Throws InvalidArgumentError for a cell of a column of numbers that is none.
[[noreturn]] void throw_no_number(const CellPlace& cell);

}  // namespace kolo::models::detail
