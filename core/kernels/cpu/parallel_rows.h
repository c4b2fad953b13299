// Splitting the walk over a strided index over the cores.
#pragma once

#include <algorithm>
#include <cstdint>

#include <kolo/core/kernels/cpu/strided_index.h>
#include <kolo/core/kernels/parallel.h>

namespace kolo::detail {

/// Calls body(position of the first element in row-major order, its offsets, number of elements) for pieces
/// of rows; within a piece each operand moves by index.row_strides(). `body` must not throw.
template <int Operands, typename Body>
void parallel_rows(const StridedIndex<Operands>& index, const Body& body) {
  if (index.elements() == 0) return;
  const std::int64_t row = index.row_elements();
  const auto steps = index.row_strides();
  // Long rows are cut: there may be but one.
  const std::int64_t pieces = (row + kElementGrain - 1) / kElementGrain;
  parallel_for(index.rows() * pieces, std::max<std::int64_t>(1, kElementGrain / row),
               [&](std::int64_t begin, std::int64_t end) {
                 index.for_rows(begin / pieces, (end + pieces - 1) / pieces,
                                [&](std::int64_t at, const auto& start) {
                                  const std::int64_t first = std::max(begin - at * pieces, std::int64_t{0}),
                                                     last = std::min(end - at * pieces, pieces);
                                  const std::int64_t from = row * first / pieces, to = row * last / pieces;
                                  auto offsets = start;
                                  for (int k = 0; k < Operands; ++k) offsets[k] += from * steps[k];
                                  body(at * row + from, offsets, to - from);
                                });
               });
}

}  // namespace kolo::detail
