// Tables from files of comma-separated values: numbers, and words as categories.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/tensor/tensor.h>
#include <kolo/models/csv_options.h>
#include <kolo/models/table_schema.h>

namespace kolo::models {

/// A table as samples and labels.
struct CsvTable {
  Tensor x;          // f32 [N, schema->elements()]
  Tensor y;          // i32 [N], or f32 [N,1] for regression; 0 where labels are not looked at
  std::string note;  // what was taken for what, what was left out: `label: column 5 "species"`
  std::shared_ptr<const TableSchema> schema = nullptr;
  std::vector<std::int64_t> lines = {};  // of each row in its file, the first being 1
};

/// True for names that end in .csv or .tsv, in letters of any size.
bool is_table_name(const std::filesystem::path& path);

/// The rows of the files, which have the same columns, one file after the other. A line for each sample,
/// fields with ',' between them, or with ';' or tabs where the first line says so; there numbers may have
/// decimal commas. Fields may stand in '"'. The first line holds the columns' names if none of its
/// fields is a number, if one of them is the label's name, or if they count 0, 1, 2, … as pandas names
/// columns (three or more). The label is `target`, else the column called label, class, target, species or y,
/// in letters of any size and in this order, else the last one. A first column without a name is pandas'
/// index and is left out. Empty lines are left out.
///
/// A column of which more fields are words than numbers is one of categories: each of its words, sorted,
/// becomes an element of the sample, 0 or 1; an empty cell, and a word that `known` has not, gives none of
/// them. The words of a label are classes. Labels that are numbers count from 0; where they are 1 … K they
/// become 0 … K − 1, and the classes are called by their numbers. A label with fractions is not of classes:
/// it is a number to be found (schema->regression). `known` with names finds its columns by name, in any
/// order.
///
/// Each error is one line that begins with the path and, where there is one, the line's number:
/// InvalidArgumentError for a line with more or fewer columns than the first, for an empty cell (unless
/// `missing` says more; a label's only with drop), for what is no finite number that f32 holds in a column of
/// numbers, for a number that is no label, words where numbers are to be found, a label that `known` has not,
/// a column of more than 1,000 words, a name that no column has, and where there are no samples or no column
/// beside the label; what InputFile throws.
CsvTable read_csv(const std::vector<std::filesystem::path>& paths, const CsvOptions& options = {});
CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options = {});

}  // namespace kolo::models
