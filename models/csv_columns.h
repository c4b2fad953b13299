// Which column of a table is what: found by the first lines of its files.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/models/csv_file.h>
#include <kolo/models/data.h>

namespace kolo::models::detail {

struct CsvColumns {
  TableSchema schema;              // of `options.known`, or as found; its words and means are not there yet
  std::vector<std::string> notes;  // of what is left out: `left out: column 1 "id"`
  std::vector<std::string> warnings = {};  // of a label that its name alone has chosen
};

/// Reads the first line of each file, and tells the file where its features and its label stand. A file is
/// then at its first row. Throws InvalidArgumentError as read_csv says.
CsvColumns find_columns(std::vector<CsvFile>& files, const CsvOptions& options);

/// The columns that --target names, which has commas between them; a name with a comma is in quotes. Throws
/// InvalidArgumentError, with the file's name, for one that is not there and one that is named twice.
std::vector<std::size_t> target_places(const CsvFile& file, const Fields& names, const std::string& target);

/// Of a column: by its name, where there are names, or by its number from 1 on.
std::optional<std::size_t> place_of(std::string_view wanted, const Fields& names, bool has_names);

/// Of the column whose name says that it holds the labels. but: a column that does not.
std::optional<std::size_t> usual_label(const Fields& names, std::optional<std::size_t> but = {});

/// `--ignore size leaves it out`: by its name, or by its number where the name is none for an option.
std::string ignore_text(std::size_t place, const std::string& name);

/// What to say of a column that numbers the rows.
std::string warning_of_row_numbers(const TableColumn& column, bool is_label);

/// `3 "size"`; `3` where the column has no name.
std::string column_text(std::size_t place, const std::string& name);

}  // namespace kolo::models::detail
