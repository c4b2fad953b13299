// Tables of numbers from files of comma-separated values.
#pragma once

#include <filesystem>

#include <kolo/core/tensor/tensor.h>

namespace kolo::models {

struct CsvTable {
  Tensor x;  // f32 [N, columns − 1]
  Tensor y;  // i32 [N]: of the column called "label", else of the last one
};

/// A line for each sample, numbers with ',' between them, in '"' or not; the first line may hold the columns'
/// names. Empty lines are left out. Each error is one line that begins with the path and, where there is one,
/// the line's number: InvalidArgumentError for a line with more or fewer columns than the first, for what is
/// no finite number that f32 holds, for a label that is no whole number from 0 on, and where there are no
/// samples or no column beside the label; what InputFile throws.
CsvTable read_csv(const std::filesystem::path& path);

}  // namespace kolo::models
