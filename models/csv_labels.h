// What the labels of a table are: classes, several labels of each sample, or numbers to find.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <kolo/core/tensor/tensor.h>
#include <kolo/models/csv_cells.h>
#include <kolo/models/csv_file.h>
#include <kolo/models/csv_rows.h>
#include <kolo/models/csv_words.h>
#include <kolo/models/data.h>
#include <kolo/models/samples.h>

namespace kolo::models::detail {

/// What is known of the columns of labels.
struct LabelCells {
  std::string file, column;  // for messages; column: of the first one with words, else of the first one
  std::size_t columns = 1;
  bool of_words = false;        // in one of the columns at least
  bool has_bars = false;        // | between words of the only column
  bool are_marks = false;       // each cell of several columns is 0 or 1
  bool have_fractions = false;  // of numbers
  std::string word = {};        // the first one
};

/// Words are classes, or labels where | stands between them. Of numbers those with fractions are no classes.
/// asked: the kind that --loss says. Throws InvalidArgumentError where it does not fit.
LabelKind label_kind_of_cells(const LabelCells& cells, const std::optional<LabelKind>& asked);

/// `label: column 5 "species"`, `targets: columns 2, 3`; columns: their texts.
std::string labels_text(LabelKind kind, bool is_split, const std::vector<std::string>& columns);

/// What to say of a label that is neither 0 nor 1 in one of several columns.
inline constexpr char kMarksAreRight[] = "labels of several columns are 0 or 1, and --loss mse finds numbers";

/// How labels that are numbers are written, so far as two ways may be meant as two classes: 01 and 1. Of more
/// than 1,000 different numbers it knows nothing.
class LabelSpellings {
 public:
  void add(std::string_view cell, double value);
  /// Of the first number that is written in two such ways; "": there is none. column: its text.
  std::string warning(const std::string& column) const;

 private:
  std::unordered_map<double, std::string> first_;  // without quotes; "": without zeros in front
  std::optional<std::pair<std::string, std::string>> two_;
};

/// The labels of a table that is being read. All that it is made of outlives it, and changes until then.
class CsvLabels {
 public:
  CsvLabels(const CsvOptions& options, const std::vector<CsvFile>& files, const CsvRows& rows,
            TableSchema& schema)
      : options_(options), files_(files), rows_(rows), schema_(schema) {}

  /// Of a table that tells its own schema. cells: of the labels' columns. Throws as label_kind_of_cells.
  void choose_kind(std::span<const ColumnCells> cells);
  /// | stands between the words of the only column.
  bool are_split() const { return schema_.label_kind == LabelKind::several && columns() == 1; }
  /// Of the rows that are kept, `count` of them, as CsvTable::y. words: of the only column, nullptr: it holds
  /// numbers. Labels 1 to K become classes with these names in the schema. Throws InvalidArgumentError for a
  /// number that is no label.
  Tensor of_rows(std::int64_t count, const ColumnWords* words);
  /// A cell of the first column, which is a number.
  void note_spelling(std::string_view cell, double value) { spellings_.add(cell, value); }
  /// Of classes that are numbers.
  std::string warning_of_spellings() const;
  /// labels_text of the schema's columns.
  std::string columns_text() const;
  /// What of_rows has to say.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::size_t columns() const { return schema_.labels.size(); }
  template <typename IsRight>
  std::optional<std::size_t> find(const IsRight& is_right) const;
  template <typename IsRight>
  void check(const IsRight& is_right, const char* right) const;
  Tensor numbers(std::int64_t count) const;
  Tensor classes(std::int64_t count, const ColumnWords* words);
  void count_from_zero(Tensor& classes);
  Tensor marks(std::int64_t count, const ColumnWords& words);

  const CsvOptions& options_;
  const std::vector<CsvFile>& files_;
  const CsvRows& rows_;
  TableSchema& schema_;
  std::vector<std::string> notes_;
  LabelSpellings spellings_;
};

}  // namespace kolo::models::detail
