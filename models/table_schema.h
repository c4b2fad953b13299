// What the columns of a table mean to a model: found in training, kept with it, used for every later table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::models {

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

  std::int64_t elements() const { return words.empty() ? 1 : static_cast<std::int64_t>(words.size()); }
};

/// All columns of a table, as a training found them. Later tables are read by it.
struct TableSchema {
  std::vector<TableColumn> features = {};  // in the order of a sample's elements
  TableColumn label = {};                  // words: the classes; empty: labels are numbers from 0 on
  bool regression = false;                 // the label is a number to be found
  std::vector<std::string> ignored = {};   // names of columns that were left out
  std::size_t columns = 0;                 // of the training's table, those left out included
  bool is_named = false;                   // the first line has the columns' names
  MissingCells missing = MissingCells::refuse;

  /// Numbers of a sample.
  std::int64_t elements() const;
};

/// As config.json keeps it; the way back throws DataLossError.
std::string to_json(const TableSchema& schema);
TableSchema table_schema_from_json(std::string_view text);

/// Columns of numbers without names, `elements` of them, and the label behind them.
TableSchema plain_table(std::int64_t elements);

}  // namespace kolo::models
