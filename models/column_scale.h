// Columns of a table in another unit than the training's: their numbers are of quite another size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/tensor/tensor.h>
#include <kolo/models/data.h>

namespace kolo::models::detail {

/// Of each feature the largest absolute number of rows f32 [N,elements]; 0 of words.
std::vector<float> largest_by_column(const TableSchema& table, const Tensor& rows);
/// The same of samples that are such rows: of all, or of those from `begin` on and before `end`.
std::vector<float> largest_by_column(const TableSchema& table, const SampleSet& samples);
std::vector<float> largest_by_column(const TableSchema& table, const SampleSet& samples, std::int64_t begin,
                                     std::int64_t end);

/// What to say where scale_warning would speak of a column alone, in one line for all of them; "" of others,
/// and where nobody knows the training's numbers (`trained` is empty). rows: of which `given` are. name: of
/// their file.
std::string column_scale_warning(const std::string& name, const TableSchema& table,
                                 const std::vector<float>& given, std::int64_t rows,
                                 const std::vector<float>& trained);

}  // namespace kolo::models::detail
