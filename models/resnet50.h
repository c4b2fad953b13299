// The residual network for photographs: He, Zhang, Ren, Sun, "Deep residual learning for image recognition",
// CVPR 2016, table 1, as PyTorch's torchvision has it (resnet50, "v1.5": a block's stride is that of its 3×3
// convolution).
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo::models {

/// images x [N,C,H,W] → logits [N,classes]: a 7×7 convolution to 64 channels and a maximum, each with stride
/// 2, four stages of 3, 4, 6 and 3 blocks (1×1, 3×3 and 1×1 convolutions) with 256 to 2048 channels, the mean
/// over the image, dense. Batch normalization follows every convolution (momentum 0.9, epsilon 1e-5).
/// Windows stand where PyTorch puts them: zeros on both sides. 25,557,032 parameters for 3 channels. Throws
/// InvalidArgumentError unless x has four dimensions and its number of channels is known.
Output resnet50(Scope& s, Output x, std::int64_t classes = 1000);

}  // namespace kolo::models
