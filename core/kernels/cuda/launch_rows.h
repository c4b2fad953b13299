// Kernels for rows that are named by their numbers. See launch.h.
#pragma once

#include <cstddef>

#include <kolo/core/kernels/cuda/launch.h>
#include <kolo/core/kernels/elements/bad_value.h>

namespace kolo::cuda {

using elements::BadValue;

/// Row numbers in rising order, equal ones in the order in which they stood. [count] each.
struct SortedRows {
  const std::uint32_t* numbers = nullptr;  // those of no row count as the number of rows
  const std::uint32_t* places = nullptr;   // where each stood
};
/// So many rows, and indices, can be sorted at most.
inline constexpr std::int64_t kMostSortedRows = 0xfffffffe;

/// Row numbers of a tensor [outer, rows, inner]; what is not in [0, rows) is noted in `bad`, which may not be
/// null, and counts as no row.
struct Rows {
  std::int64_t outer;
  std::int64_t rows;
  std::int64_t inner;
  const void* indices;  // i32 or i64
  ElementType index_type;
  std::int64_t count;
  BadValue* bad;
  SortedRows sorted = {};  // the indices, noted already; empty: each row looks at all of them
};

/// y [outer, count, inner] are the named rows of x [outer, rows, inner]; 0 where there is none.
struct GatherArguments {
  int bytes_per_element;
  const void* x;
  void* y;
  Rows rows;
};
cudaError_t launch_gather(cudaStream_t stream, const GatherArguments& arguments);

/// What becomes of a row of y [outer, rows, inner] for each row of x [outer, count, inner] that has its
/// number, in their order: they are all added to zeros, added, subtracted, or the last one stays; add_sum:
/// their sum from zero is added.
enum class Scatter { sum, add, sub, update, add_sum };
struct ScatterArguments {
  Scatter scatter;
  int bytes_per_element;  // update; the others are of f32
  const void* x;
  void* y;
  Rows rows;
};
cudaError_t launch_scatter(cudaStream_t stream, const ScatterArguments& arguments);

/// numbers[i] = the row that index i names, or rows.rows, and places[i] = i. At most kMostSortedRows of both.
struct RowNumbersArguments {
  Rows rows;
  std::uint32_t* numbers;
  std::uint32_t* places;
};
cudaError_t launch_row_numbers(cudaStream_t stream, const RowNumbersArguments& arguments);

/// Sorts pairs by their numbers, which are below 2^bits; equal ones keep their order. [count] each, of which
/// the first holds the pairs.
struct SortPairsArguments {
  std::uint32_t* numbers[2];
  std::uint32_t* places[2];
  std::int64_t count;
  int bits;
  void* scratch;
  std::size_t scratch_bytes;
};
/// The scratch memory of a GPU that is current. Throws nothing; 0 where CUDA does not say.
std::size_t sort_pairs_bytes(std::int64_t count, int bits);
/// sorted: in one of the two.
cudaError_t launch_sort_pairs(cudaStream_t stream, const SortPairsArguments& arguments, SortedRows& sorted);

}  // namespace kolo::cuda
