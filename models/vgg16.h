// Simonyan, Zisserman, "Very deep convolutional networks for large-scale image recognition", ICLR 2015,
// table 1, column D, as PyTorch's torchvision has it.
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo::models {

/// images x [N,C,H,W] → logits [N,classes]: thirteen 3×3 convolutions to 64, 128, 256, 512 and 512 channels
/// with a maximum of stride 2 behind each group, two dense layers of 4096 with dropout of one half, and a
/// third. 138,357,544 parameters for 3×224×224. Throws InvalidArgumentError unless x has four dimensions, of
/// which all but the first are known, and is at least 32×32.
Output vgg16(Scope& s, Output x, std::int64_t classes = 1000);

}  // namespace kolo::models
