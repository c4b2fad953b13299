// Columns of a table, or numbers to find, in another unit than the training's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/tensor/tensor.h>
#include <kolo/models/data.h>

namespace kolo::models::detail {

/// Of rows f32 [N,…], the elements of these columns one behind the other.
ColumnSizes sizes_of_columns(const std::vector<TableColumn>& columns, const Tensor& rows);

/// Columns of samples whose numbers have each a unit: those of a table; and each element of other rows of
/// numbers, by its place. None of pixels, and of rows of very many numbers.
std::vector<TableColumn> unit_columns(const TableSchema* table, const Shape& sample, DType dtype);
/// The same of a table's samples, or of an array's.
std::vector<TableColumn> unit_columns(const SampleKind& kind);

/// How large the numbers of samples are.
struct SampleSizes {
  ColumnSizes columns;  // where they have units
  ColumnSizes labels;   // of numbers to find
};
/// columns: of the samples, in order. Nothing of samples that would have to be decoded.
SampleSizes sizes_of_samples(const std::vector<TableColumn>& columns, const SampleSet& samples);
/// The same of those from `begin` on and before `end`.
SampleSizes sizes_of_samples(const std::vector<TableColumn>& columns, const SampleSet& samples,
                             std::int64_t begin, std::int64_t end);
/// Of all samples of both.
ColumnSizes joined(ColumnSizes a, const ColumnSizes& b);

/// The columns of numbers to find: of a table, or by their places.
std::vector<TableColumn> number_columns(const SampleKind& kind);

/// What to say of columns in another unit, in one line for all of them; "" of others, and where nobody knows
/// the training's numbers. name: of their file. A column is told
/// - whose largest number and typical one both are of a size that scale_warning would speak of. The largest
/// of
///   some rows alone says nothing, as of pixels at the border of digits. Of a column that is 0 in most rows
///   at least 20 other numbers are compared, here and in the training;
/// - of which nine of ten numbers, of 20 at least, lie outside of the training's, and far away. Dates and
///   numbers of rows that go on behind the training's are not told;
/// - in which several rows have one number that is far from all others and from the training's: -999;
/// - whose numbers are all whole where nearly all of the training's had fractions.
std::string column_scale_warning(const std::string& name, const std::vector<TableColumn>& columns,
                                 const ColumnSizes& given, const ColumnSizes& trained);

}  // namespace kolo::models::detail
