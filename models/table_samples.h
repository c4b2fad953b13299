// Tables as samples: which rows train, and which test.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <kolo/models/data.h>
#include <kolo/models/data_splits.h>

namespace kolo::models::detail {

/// The files of a folder that are tables, sorted; without predictions, unless all are such tables.
std::vector<std::filesystem::path> tables_in(const std::filesystem::path& folder);

/// True for a folder of tables: train.csv, test.csv, or others.
bool is_table_folder(const std::filesystem::path& folder);

/// A file, or a folder of them. Files are read once, whatever is wanted of them.
DataSplits table_samples(const std::filesystem::path& path, const DataRequest& request, Wanted wanted);

/// Throws InvalidArgumentError where all labels are alike: what a model cannot learn from would end with a
/// loss of 0, as if it were trained. note: what the file's columns were taken for. names: of the classes,
/// where they have some.
void check_labels(const Tensor& y, const std::filesystem::path& path, const std::string& note,
                  const std::vector<std::string>& names = {});

}  // namespace kolo::models::detail
