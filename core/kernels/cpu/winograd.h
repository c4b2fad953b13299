// Winograd's algorithm for convolutions of f32 images in blocked order, whose windows of 3 × 3 move by one: a
// tile of 4 × 4 results takes 36 products for each pair of channels instead of 144 (Lavin & Gray, "Fast
// Algorithms for Convolutional Neural Networks", arXiv:1509.09308: F(4 × 4, 3 × 3)).
#pragma once

#include <cstddef>
#include <cstdint>

namespace kolo::detail {

/// Images [N,C,H,W] and results [N,O,H',W'], whose channels lie in blocks of block(); weights are [O,C,3,3],
/// row-major. For one thread.
struct WinogradConvolution {
  struct Axis {
    std::int64_t size;        // H or W
    std::int64_t outputs;     // H' or W'
    std::int64_t pad_before;  // 0 to 2
  };
  std::int64_t images;
  std::int64_t channels;
  std::int64_t outs;
  Axis rows;
  Axis cols;

  /// Channels of a block: as many as the processor computes with at once.
  static std::int64_t block();
  /// Whether both numbers of channels are multiples of a block, and none is 0.
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
