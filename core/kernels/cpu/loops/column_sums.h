// Sums down the columns of a matrix, compiled once for each instruction set and chosen at run time.
#pragma once

#include <cstdint>

namespace kolo::detail {

/// Adds to sums[j], for j below `columns`, column j of x, whose rows are `stride` apart: in T over 8 rows at
/// most, and in double over those.
template <typename T>
void add_columns(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, double* sums);

}  // namespace kolo::detail
