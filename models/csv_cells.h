// What the cells of a table's column are: numbers, words, or empty.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// What of a table, beside a column itself, says how its numbers are written.
struct NumberSigns {
  bool is_known = false;            // an earlier table has said it of each column
  bool had_decimal_commas = false;  // in some column of the earlier table
  bool has_decimal_commas = false;  // in some column of this one, or points of thousands
};

/// Counts of a column's cells. In a file with commas between its fields a number may have a comma too, within
/// quotes: a decimal one if all of the column's numbers agree, so that none has a point, and one comma at
/// least is not that of thousands; one of thousands if another number of the column is as 1,100.50 or
/// 1,234,567, or if others have a decimal point, as 950.25, while no column has decimal commas; refused if
/// nothing of the column says which. In other files 1.100 is 1.1, but 1100 where another number of the column
/// is as 1.100,50, and refused where nothing of the column says which while the table has decimal commas;
/// 1,100 is 1.1, but 1100 as above, refused between tabs if nothing of the table says which, and between
/// semicolons beside numbers such as 950.25.
class ColumnCells {
 public:
  /// Adds the file's cell of its present row. Returns its number, if it is one, or may be one with a decimal
  /// comma.
  std::optional<double> add(const CsvFile& file, std::size_t column, std::string_view field);
  /// After the last cell: whether those with commas are numbers or words, and what the commas are. known: of
  /// an earlier table. Throws InvalidArgumentError where nothing tells, where cells differ from each other or
  /// from the earlier table's, and where a few cells differ from all others.
  void finish_commas(const TableColumn& known, const NumberSigns& signs);
  /// After finish_commas of all columns: whether points are those of thousands. Throws InvalidArgumentError
  /// where nothing tells, where cells differ from each other or from the earlier table's.
  void finish_points(const TableColumn& known, const NumberSigns& signs);
  /// A column of numbers, of which some have decimal commas or points of thousands.
  bool shows_commas() const;
  /// After both: the mark of number_with_thousands, by which the column's numbers are read again; none where
  /// each of them tells by itself.
  std::optional<char> thousands_mark() const;
  /// Those of a label are words also where | stands in one of them.
  bool are_words(bool is_label) const { return words > numbers || (is_label && bars > 0); }
  /// Whole numbers, each one more than that before, in all of the rows, and not in a few rows alone.
  bool numbers_rows() const;
  /// Numbers with decimal commas in a file with other separators.
  std::int64_t told_commas() const { return grouped_.count > 0 || points_tell() ? 0 : with_commas_; }

  /// Where f32 rounds numbers by more than a hundredth of what they differ by in all: "its numbers lie within
  /// 60 of each other, and …"; else "".
  std::string rounding_text() const;

  std::int64_t numbers = 0, words = 0, empty = 0;
  std::int64_t bars = 0;              // words with | in them
  double sum = 0;                     // of the numbers
  bool has_decimal_commas = false;    // in a file with commas between its fields
  bool has_thousands_points = false;  // in other files
  bool has_thousands_commas = false;
  bool has_decimal_points = false;
  CellPlace first_word = {}, first_empty = {};

 private:
  // The first of some cells, and their count.
  struct Cells {
    std::int64_t count = 0;
    CellPlace first = {};
    void add(const CsvFile& file, std::size_t column, std::string_view field);
  };
  // How numbers are written: of one of them, and of several.
  struct Mark {
    const char* one;
    const char* several;
  };
  void count_comma(const CsvFile& file, std::size_t column, std::string_view field);
  void count_marks(const CsvFile& file, std::size_t column, std::string_view field);
  void check_known(const TableColumn& known) const;
  static void check_alike(const Cells& a, const Mark& of_a, const Cells& b, const Mark& of_b);
  bool points_tell() const;
  bool are_commas_unclear(const TableColumn& known, const NumberSigns& signs) const;
  [[noreturn]] void refuse_commas(const NumberSigns& signs) const;
  bool is_unclear(const TableColumn& known, const NumberSigns& signs) const;

  void note_rounding(double value);

  double least_ = HUGE_VAL, most_ = -HUGE_VAL;  // of the numbers
  double rounding_ = 0;                         // the most by which f32 changes one of them
  bool rises_by_one_ = true;                    // each number so far
  double last_ = 0;
  Cells open_;                    // with commas, of which only the whole column says whether they are numbers
  double sum_of_open_ = 0;        // of these
  Cells decimal_;                 // with a decimal comma, as 0,5
  Cells grouped_;                 // with commas of thousands, as 1,234.5 or 1,234,567
  Cells unclear_commas_;          // as 1,234
  char separator_ = ';';          // of the file with the first of these
  std::int64_t with_commas_ = 0;  // numbers, in a file with other separators
  Cells points_;                  // numbers with a decimal point, as 1.5
  Cells unclear_;                 // as 1.100
  bool are_commas_between_ = false;  // in a file of unclear ones
  Cells thousands_;                  // in a file with other separators, as 1.100,5 or 1.234.567
  std::int64_t decimal_commas_ = 0;  // in such a file, as 1,5, and between semicolons as 1,100
};

/// After the last cell of a table: finish_commas and finish_points of all its columns. known: of an earlier
/// table, as many as cells. signs: what columns that are left out show. Returns whether the table has decimal
/// commas, or points of thousands.
bool finish_numbers(const std::vector<ColumnCells*>& cells, const std::vector<TableColumn>& known,
                    NumberSigns signs);

/// `fields between ";", 12 numbers with decimal commas`; "" for commas.
std::string separator_note(char separator, const std::vector<ColumnCells>& cells);
/// `decimal commas in column 3 "size"` and `points of thousands in columns 1, 2`; texts: of the columns.
std::vector<std::string> number_notes(const std::vector<ColumnCells*>& cells,
                                      const std::vector<std::string>& texts);

/// Throws InvalidArgumentError for a cell of a column of numbers that is none. in_training: so says another
/// table.
[[noreturn]] void throw_no_number(const CellPlace& cell, bool in_training = false);

}  // namespace kolo::models::detail
