// Convolutions in bf16 whose window is one pixel, as products of matrices.
#pragma once

#include <cstdint>
#include <optional>

#include <kolo/core/kernels/cpu/onednn/onednn.h>

namespace kolo::detail {

/// Of images [N,C,H,W] and results [N,O,H',W'] in the order kChannelsLast (core/ops/blocked.h), f32 or bf16;
/// without padding or groups.
struct PointConvolution {
  Shape images;
  Shape results;
  DType images_type;
  DType results_type;
  std::int64_t row_stride;
  std::int64_t col_stride;
};

/// The call (images, gradient of the results) → gradient of the weights [O,C,1,1], row-major f32: the product
/// of two matrices of which a row is a pixel, rounded to bf16, summed in f32. Empty where oneDNN has no fast
/// code for that, cannot say which pixels are read (the last stride leaves the image), or has more threads
/// than there is work for.
std::optional<OneDnnCall> point_weight_gradient(const PointConvolution& convolution);

}  // namespace kolo::detail
