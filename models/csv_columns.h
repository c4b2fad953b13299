// Which column of a table is what: found by the first lines of its files.
#pragma once

#include <string>
#include <vector>

#include <kolo/models/csv_file.h>
#include <kolo/models/csv_options.h>
#include <kolo/models/table_schema.h>

namespace kolo::models::detail {

struct CsvColumns {
  TableSchema schema;              // of `options.known`, or as found; its words and means are not there yet
  std::vector<std::string> notes;  // of what is left out: `left out: column 1 "id"`
};

/// Reads the first line of each file, and tells the file where its features and its label stand. A file is
/// then at its first row. Throws InvalidArgumentError as read_csv says.
CsvColumns find_columns(std::vector<CsvFile>& files, const CsvOptions& options);

/// `3 "size"`; `3` where the column has no name.
std::string column_text(std::size_t place, const std::string& name);

}  // namespace kolo::models::detail
