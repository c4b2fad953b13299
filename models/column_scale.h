// Columns of a table in another unit than the training's: their numbers are of quite another size.
#pragma once

#include <cstdint>
#include <string>

#include <kolo/core/tensor/tensor.h>
#include <kolo/models/data.h>

namespace kolo::models::detail {

/// Of rows f32 [N,elements].
ColumnSizes sizes_of_columns(const TableSchema& table, const Tensor& rows);
/// The same of samples that are such rows: of all, or of those from `begin` on and before `end`.
ColumnSizes sizes_of_columns(const TableSchema& table, const SampleSet& samples);
ColumnSizes sizes_of_columns(const TableSchema& table, const SampleSet& samples, std::int64_t begin,
                             std::int64_t end);
/// Of each column the larger ones.
ColumnSizes joined(ColumnSizes a, const ColumnSizes& b);

/// What to say of columns whose numbers scale_warning would speak of, in one line for all of them: of their
/// largest number as well as of their typical one, and of columns that have a number in most rows. Elsewhere,
/// as with pixels at the border of digits and sums that are mostly 0, the largest number of some rows says
/// nothing. "" of others, and where nobody knows the training's numbers. rows: of which `given` are. name: of
/// their file.
std::string column_scale_warning(const std::string& name, const TableSchema& table, const ColumnSizes& given,
                                 std::int64_t rows, const ColumnSizes& trained);

}  // namespace kolo::models::detail
