// Winograd's algorithm for convolutions of f32 images in blocked order whose windows move by one (Lavin &
// Gray, "Fast Algorithms for Convolutional Neural Networks", arXiv:1509.09308). Each pair of channels takes
// 36 products for a tile of 4 × 4 results of windows of 3 × 3, instead of 144; of 2 × 2 of windows of 5 × 5,
// instead of 100.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kolo::detail {

/// Images [N,C,H,W] and results [N,O,H',W'], whose channels lie in blocks of block(); weights are
/// [O,C,window,window], row-major. On one thread.
struct WinogradConvolution {
  struct Axis {
    std::int64_t size;        // H or W
    std::int64_t outputs;     // H' or W'
    std::int64_t pad_before;  // less than the window
  };
  std::int64_t window;  // 3 or 5
  std::int64_t images;
  std::int64_t channels;
  std::int64_t outs;
  Axis rows;
  Axis cols;

  /// Channels of a block: as many as the processor computes with at once.
  static std::int64_t block();
  /// Rows and columns of a tile of results.
  std::int64_t tile() const { return 7 - window; }
  std::int64_t tiles_along(const Axis& axis) const { return (axis.outputs + tile() - 1) / tile(); }
  /// Whether both numbers of channels are multiples of a block, none is 0, and the window is one of the two.
  bool fits() const;

  /// Of the three passes' scratch memory, which must be aligned to 64 bytes.
  std::size_t results_scratch_bytes() const;
  std::size_t image_gradient_scratch_bytes() const;
  std::size_t weight_gradient_scratch_bytes() const;

  /// The order of the sums depends on the shapes and the instruction set alone. A result that is not finite
  /// makes others of its tile so, NaN or infinite.
  void results(const float* x, const float* weights, float* y, float* scratch) const;
  void image_gradient(const float* weights, const float* dy, float* dx, float* scratch) const;
  void weight_gradient(const float* x, const float* dy, float* dweights, float* scratch) const;
};

}  // namespace kolo::detail
