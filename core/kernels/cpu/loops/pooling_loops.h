// The inner loops of max pooling of images in blocked order (core/ops/blocked.h), compiled once for each
// instruction set and chosen at run time. Each takes one plane: rows, columns and the channels of one block.
#pragma once

#include <cstdint>

#include <kolo/core/ops/convolution.h>

namespace kolo::detail {

struct MaxPoolLoops {
  /// x [rows, columns, block] → y, cells [rows' outputs, columns' outputs, block]: the largest element of
  /// each window, the first of equal ones, and the number of its cell (core/ops/pooling.cc), of fewer than
  /// 256. Unlike oneDNN's: NaN is larger than any number, and a window of −∞ gives −∞.
  void (*forward)(const float* x, const WindowAxis& rows, const WindowAxis& cols, float* y,
                  std::uint8_t* cells);
  /// cells, dy → dx [rows, columns, block]: to each element the gradients of the windows that chose it, added
  /// up in their order.
  void (*backward)(const std::uint8_t* cells, const float* dy, const WindowAxis& rows, const WindowAxis& cols,
                   float* dx);
};

/// For the processor this runs on, and blocks of 8 or 16 channels.
const MaxPoolLoops& max_pool_loops(std::int64_t block);

}  // namespace kolo::detail
