// Tables of numbers from files of comma-separated values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <kolo/core/tensor/tensor.h>

namespace kolo::models {

/// A table as samples and labels.
struct CsvTable {
  Tensor x;          // f32 [N, other columns]
  Tensor y;          // i32 [N]
  std::string note;  // which column is the label, and which one is left out: `label: column 5 "species"`
};

/// A line for each sample, numbers with ',' between them, in '"' or not. The first line holds the columns'
/// names if none of its fields is a number, if one of them is a name for labels, or if they count 0, 1, 2, …
/// as pandas names columns (three or more). The label is the column called label, class, target, species or
/// y, in letters of any size and in this order, else the last one. A first column without a name is pandas'
/// index and is left out. Empty lines are left out. Each error is one line that begins with the path and,
/// where there is one, the line's number: InvalidArgumentError for a line with more or fewer columns than the
/// first, for what is no finite number that f32 holds, for a label that is no whole number from 0 on, and
/// where there are no samples or no column beside the label; what InputFile throws.
CsvTable read_csv(const std::filesystem::path& path);

/// The rows of a table without their labels.
struct CsvRows {
  Tensor x;                         // f32 [N,columns]
  std::vector<std::int64_t> lines;  // of each row in the file, the first being 1
};
/// The rows of a table whose label is not known, or not asked for: where it has a column more than `columns`,
/// that of the label (as above) is not looked at. Errors as read_csv, and InvalidArgumentError for another
/// number of columns.
CsvRows read_csv_rows(const std::filesystem::path& path, std::int64_t columns);

}  // namespace kolo::models
