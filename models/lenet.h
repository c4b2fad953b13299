// The convolutional network of the first tutorials, after LeCun's LeNet-5 (1998): kolo's standard first
// model.
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo::models {

/// For digits x [N,784] or [N,1,28,28]: 5×5 convolution to 32 channels, relu, 2×2 pooling, 5×5 convolution to
/// 64, relu, pooling, dense 1024, relu, dense → logits [N,classes]. All with SAME padding; 3,274,634
/// parameters in conv1, conv2, fc1, fc2. Throws InvalidArgumentError for another x.
Output lenet(Scope& s, Output x, std::int64_t classes = 10);

}  // namespace kolo::models
