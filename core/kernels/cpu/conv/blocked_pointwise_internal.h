// How blocked_pointwise.cc cuts a convolution of a given shape, whatever the instruction set.
#pragma once

#include <algorithm>
#include <cstdint>

#include <kolo/core/kernels/cpu/conv/blocked_pointwise.h>
#include <kolo/core/kernels/cpu/gemm/gemm_parts.h>

namespace kolo::detail {

inline std::int64_t pixels_of(const BlockedPointwise& c) { return c.rows.outputs * c.cols.outputs; }

// Pixels of results that pass through the innermost loops together: a piece of each of some images.
struct PixelGroup {
  std::int64_t image, images;
  std::int64_t pixel, pixels;  // of each image
};
// All pixels of the results, in groups of about `most`.
class PixelGroups {
 public:
  PixelGroups(const BlockedPointwise& c, std::int64_t most)
      : images_(c.images),
        pixels_(pixels_of(c)),
        together_(std::clamp<std::int64_t>(most / pixels_, 1, images_)),
        pieces_(parts_of(pixels_, most)) {}
  std::int64_t count() const { return parts_of(images_, together_) * pieces_; }
  PixelGroup at(std::int64_t n) const {
    const std::int64_t image = n / pieces_ * together_, piece = n % pieces_,
                       first = pixels_ * piece / pieces_;
    return {image, std::min(together_, images_ - image), first, pixels_ * (piece + 1) / pieces_ - first};
  }

 private:
  std::int64_t images_, pixels_, together_, pieces_;
};

}  // namespace kolo::detail
