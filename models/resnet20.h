// The residual network for small images: He, Zhang, Ren, Sun, "Deep residual learning for image recognition",
// CVPR 2016, section 4.2, with projections (1×1 convolutions) where a shortcut changes its shape.
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo::models {

/// images x [N,C,H,W] → logits [N,classes]: a 3×3 convolution to 16 channels, three stages of three blocks
/// with 16, 32 and 64 channels, each of two 3×3 convolutions, the mean over the image, dense. Batch
/// normalization follows every convolution (momentum 0.9, epsilon 1e-5); padding is SAME. 272,474 parameters
/// for the 3 channels of CIFAR-10's 32×32 images. Throws InvalidArgumentError unless x has four dimensions
/// and its number of channels is known.
Output resnet20(Scope& s, Output x, std::int64_t classes = 10);

}  // namespace kolo::models
