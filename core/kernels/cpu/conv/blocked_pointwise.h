// Convolutions of f32 images in blocked order whose window is one pixel: products of matrices of which a row
// is a pixel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kolo::detail {

/// Images [N,C,H,W] and results [N,O,H',W'], whose channels lie in blocks of block(); weights are [O,C],
/// row-major. On one thread.
struct BlockedPointwise {
  struct Axis {
    std::int64_t size;     // H or W
    std::int64_t outputs;  // H' or W': pixel `stride · n` makes result n
    std::int64_t stride;
  };
  std::int64_t images;
  std::int64_t channels;
  std::int64_t outs;
  Axis rows;
  Axis cols;

  /// Channels of a block: as many as the processor computes with at once.
  static std::int64_t block();
  /// Whether both numbers of channels are multiples of a block, none is 0, and all results lie in the image.
  bool fits() const;
  bool takes_all_pixels() const { return rows.stride == 1 && cols.stride == 1; }

  /// Of the three passes' scratch memory, which must be aligned to 64 bytes.
  std::size_t results_scratch_bytes() const;
  std::size_t image_gradient_scratch_bytes() const;
  std::size_t weight_gradient_scratch_bytes() const;

  /// What the gradient of the images becomes before it is stored: `added` is added to it, which may be where
  /// it is stored, and then it counts where y > 0, unless y is null. Both lie as the images do, of which all
  /// pixels must make results.
  struct Tail {
    const float* added = nullptr;
    const float* y = nullptr;
  };

  /// The order of the sums depends on the shapes and the instruction set alone.
  void results(const float* x, const float* weights, float* y, float* scratch) const;
  void image_gradient(const float* weights, const float* dy, float* dx, float* scratch) const {
    image_gradient(weights, dy, {}, dx, scratch);
  }
  void image_gradient(const float* weights, const float* dy, const Tail& tail, float* dx,
                      float* scratch) const;
  void weight_gradient(const float* x, const float* dy, float* dweights, float* scratch) const;
};

}  // namespace kolo::detail
