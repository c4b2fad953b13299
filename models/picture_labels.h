// The labels of pictures that columns of a table tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kolo/models/csv_cells.h>
#include <kolo/models/csv_file.h>
#include <kolo/models/data.h>

namespace kolo::models::detail {

/// Row by row. One thread at a time.
class PictureLabels {
 public:
  /// columns: where the labels stand; names: of the table's columns, empty where they have none.
  PictureLabels(const std::vector<std::size_t>& columns, const std::vector<std::string>& names);

  /// The file's present row.
  void add(const CsvFile& file, const Fields& fields);
  /// After the last row: what the labels are, into `found`, whose files are those of the rows. Throws
  /// InvalidArgumentError for what read_csv refuses in a label's column, and for a picture without a class.
  void finish(const NamedImagesOptions& options, ImageFolder& found);
  /// After finish: `label: column 3 "breed", 4 pictures without a label`.
  std::string note() const;

 private:
  void choose_kind(const NamedImagesOptions& options);
  void take_words(ImageFolder& found) const;
  void take_numbers(ImageFolder& found) const;
  std::vector<std::string> words_in(const std::string& word) const;
  std::string column_named(std::size_t i) const;
  void add_warnings(ImageFolder& found) const;
  std::shared_ptr<const TableSchema> label_table(bool has_decimal_commas) const;
  bool is_split() const { return kind_ == LabelKind::several && columns_.size() == 1; }

  std::vector<std::size_t> columns_;
  std::vector<std::string> names_;                 // of `columns_`; "" for one without a name
  std::vector<ColumnCells> cells_;                 // of `columns_`
  std::vector<double> with_points_, with_commas_;  // what values_ are where these are those of thousands
  std::vector<double> values_;                     // [rows, columns]; NaN for words
  std::vector<std::string> words_;                 // of the only column, [rows]; "" for an empty cell
  std::vector<std::int64_t> lines_;                // of the rows
  std::vector<std::string> notes_;                 // how its numbers are written
  std::string file_;
  char separator_ = ',';
  LabelKind kind_ = LabelKind::one_class;
};

}  // namespace kolo::models::detail
