// Tables: what their columns mean to a model, and how they become samples and labels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/core/tensor/tensor.h>
#include <kolo/models/samples.h>

namespace kolo::models {

// What the columns of a table mean to a model: found in training, kept with it, used for every later table.

/// What stands in an empty cell: it is refused, the mean of its column, 0, or the row is left out.
enum class MissingCells { refuse, mean, zero, drop };
/// "mean"; throws InvalidArgumentError for another word than the names of MissingCells.
MissingCells missing_cells_named(std::string_view name);
const char* name(MissingCells missing);

/// A column that the model learns from.
struct TableColumn {
  std::string name = {};                // of the first line; "" where there is none
  std::size_t place = 0;                // in the training's table, from 0 on
  std::vector<std::string> words = {};  // of a column of words, sorted: each is an element, 0 or 1
  float mean = 0;                       // of a column of numbers
  bool has_decimal_commas = false;      // within quotes, in a table with commas between its fields
  bool has_thousands_points = false;    // 1.100 is 1100, in a table with other separators
  bool has_thousands_commas = false;    // 1,100 is 1100
  bool has_decimal_points = false;      // 1.100 is 1.1

  std::int64_t elements() const { return words.empty() ? 1 : static_cast<std::int64_t>(words.size()); }
};

/// All columns of a table, as a training found them. Later tables are read by it.
struct TableSchema {
  std::vector<TableColumn> features = {};  // in the order of a sample's elements
  // One, or of numbers to find and of labels that are 0 or 1 several. words: the classes or labels; empty:
  // classes are numbers from 0 on.
  std::vector<TableColumn> labels = {TableColumn{}};
  LabelKind label_kind = LabelKind::one_class;
  std::vector<std::string> ignored = {};  // names of columns that were left out
  std::size_t columns = 0;                // of the training's table, those left out included
  bool is_named = false;                  // the first line has the columns' names
  bool is_of_table = true;                // false: plain_table's, of a model that has not learnt from a table
  MissingCells missing = MissingCells::refuse;
  bool has_decimal_commas = false;  // some number of it, or points of thousands

  /// Numbers of a sample.
  std::int64_t elements() const;
  /// Of classes, numbers or labels; of classes 0 where they have no names.
  std::int64_t outputs() const;
  /// As many as outputs(); empty where they have none.
  std::vector<std::string> output_names() const;
};

/// How large the numbers of a table's columns are, of each one; of words 0. A value.
struct ColumnSizes {
  std::int64_t rows = 0;            // of which they are; 0: of an earlier version
  std::vector<float> largest = {};  // absolute number; empty: nobody knows
  // Of rows all over the table: the median of the absolute numbers that are not 0, and the share of these;
  // empty: of an earlier version.
  std::vector<float> typical = {}, filled = {};
  std::vector<float> least = {}, greatest = {};  // with their signs; empty: of an earlier version
  std::vector<float> whole = {};                 // the share of whole numbers, of the same rows as `typical`
  // Of the same rows as `typical`: what a tenth, a half and nine tenths of the numbers do not exceed. No
  // folder keeps the half, those of earlier versions none.
  std::vector<float> low = {}, middle = {}, high = {};
  /// A number that several of the same rows have, of which there are `of`, far from all others: -999.
  struct Alone {
    float number = 0;
    std::int64_t count = 0, of = 0;  // 0: there is none
  };
  std::vector<Alone> alone = {};  // no folder keeps it
};

/// As config.json keeps it; the way back throws DataLossError.
std::string to_json(const TableSchema& schema);
TableSchema table_schema_from_json(std::string_view text);

/// Columns of numbers without names, `elements` of them, and the label behind them.
TableSchema plain_table(std::int64_t elements);

// How the columns of a table are taken.

/// How a table is read: what the user said, and what an earlier training found.
struct CsvOptions {
  // The label's column, by its name or its number from 1 on, or several with commas between; "": found.
  std::string target = {};
  std::vector<std::string> ignore = {};  // columns that are left out, the same way
  MissingCells missing = MissingCells::refuse;
  std::optional<LabelKind> label_kind = {};  // what labels are taken for; none: as read_csv finds them
  std::shared_ptr<const TableSchema> known = nullptr;  // of another table, by which this one is read
  std::string known_file = {};  // whose columns `known` tells, for messages; "": nobody knows
  bool labelled = true;  // false, with `known`: labels are not looked at, and their column may be absent
};

// Tables from files of comma-separated values: numbers, and words as categories.

/// A table as samples and labels.
struct CsvTable {
  Tensor x;  // f32 [N, schema->elements()]
  Tensor y;  // i32 [N], or of numbers and several labels f32 [N,outputs]; 0 where labels are not looked at
  std::string note;  // what was taken for what, what was left out: `label: column 5 "species"`
  std::shared_ptr<const TableSchema> schema = nullptr;
  std::vector<std::int64_t> lines = {};    // of each row in its file, the first being 1
  std::vector<std::size_t> ends = {};      // of each file, in rows
  std::vector<std::string> warnings = {};  // what may not be as its owner thinks
};

/// True for names that end in .csv or .tsv, in letters of any size.
bool is_table_name(const std::filesystem::path& path);

/// The rows of the files, which have the same columns, one file after the other. A line for each sample,
/// fields with ',' between them, or with ';' or tabs where the first line says so (which may be `sep=;`);
/// there numbers may have decimal commas, and points of thousands, as 1.100,50. Fields may stand in '"', with
/// separators and line breaks in them, and so may numbers with decimal commas between ',', if all of their
/// column agree. Commas are those of thousands in a column with a number that tells, as 1,100.50 or
/// 1,234,567, and beside numbers as 950.25 unless other columns have decimal commas. The first line holds the
/// columns' names if none of its fields is a number, if one of them is the label's name, or if they count 0,
/// 1, 2, … as pandas names columns (three or more). The label is `target`, else the column called label,
/// class, target, species or y, in letters of any size and in this order, else the last one. A first column
/// without a name is pandas' index and is left out. Empty lines are left out. Several targets are numbers to
/// find, or where all of their cells are 0 or 1 as many labels.
///
/// A column of which more fields are words than numbers is one of categories: each of its words, sorted,
/// becomes an element of the sample, 0 or 1; an empty cell, and a word that `known` has not, gives none of
/// them. The words of a label are classes. Labels that are numbers count from 0; where they are 1 … K they
/// become 0 … K − 1, and the classes are called by their numbers. A label with fractions is not of classes:
/// it is a number to be found. Words with | between them are several labels, of which an empty cell has none.
/// `label_kind` says it otherwise. `known` with names finds its columns by name, in any order.
///
/// Each error is one line that begins with the path and, where there is one, the line's number:
/// InvalidArgumentError for a line with more or fewer columns than the first, for an empty cell (unless
/// `missing` says more; a label's only with drop), for what is no finite number that f32 holds in a column of
/// numbers, for a number that is no label, words where numbers are to be found, a label that `known` has not,
/// labels that are not of the asked kind, a column of more than 1,000 words, a name that no column has, and
/// where there are no samples or no column beside the label; what InputFile throws.
CsvTable read_csv(const std::vector<std::filesystem::path>& paths, const CsvOptions& options = {});
CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options = {});

}  // namespace kolo::models
