// The network of TensorFlow's CIFAR-10 tutorial (2015–2018, models/tutorials/image/cifar10/cifar10.py), after
// cuda-convnet's (Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep convolutional neural
// networks", NIPS 2012, section 3.3: local response normalization).
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo::models {

/// images x [N,C,H,W] → logits [N,classes]: 5×5 convolution to 64 channels, relu, 3×3 maximum of stride 2,
/// local response norm; the same with the norm before the maximum; dense layers of 384 and 192 with relu, and
/// a third. Padding is SAME; first values are the tutorial's (truncated normal). Half the squares of the
/// first two dense layers' weights times 0.004 are the graph's penalties (layers.h). 1,068,298 parameters for
/// the tutorial's 3×24×24, 1,756,426 for CIFAR-10's 3×32×32. The tutorial evaluates with moving averages of
/// the variables: ExponentialMovingAverage (optimizer/moving_average.h) with decay 0.9999. Throws
/// InvalidArgumentError unless x has four dimensions, of which all but the first are known.
Output cifar10_net(Scope& s, Output x, std::int64_t classes = 10);

}  // namespace kolo::models
