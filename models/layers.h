// Layers: the ops of a neural network together with their variables.
#pragma once

#include <cstdint>
#include <string>

#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/convolution.h>

namespace kolo::models {

// A layer named "fc1" makes the variables fc1/w and fc1/b. Weights start by Glorot's uniform rule, from the
// graph's seed and their own names, so that a layer starts alike whatever stands before it; biases start at
// 0.

/// x [N, inputs] · w [inputs, units], plus b [units] if asked for → [N, units].
/// Throws InvalidArgumentError unless x is a matrix whose number of columns is known.
Output dense(const Scope& s, Output x, std::int64_t units, const std::string& name, bool bias = true);

/// Numbers of batch_norm as a layer.
struct BatchNormLayer {
  double momentum = 0.99;  // share of its old value that a moving average keeps in a step
  double epsilon = 1e-3;   // added to the variance
};

/// Sizes of conv2d as a layer, in pixels.
struct Conv2dLayer {
  std::int64_t filters;  // channels of the result
  RowsCols kernel{3, 3};
  RowsCols strides{1, 1};
  Padding padding = Padding::same;
  bool bias = true;  // false for what a normalization follows, which takes any bias away again
};

/// images [N,C,H,W] with weights w [filters,C,kh,kw], plus b [filters] if asked for → [N,filters,H',W'].
/// Throws InvalidArgumentError unless x has four dimensions and its number of channels is known.
Output conv2d(const Scope& s, Output x, const Conv2dLayer& layer, const std::string& name);

/// Sizes of depthwise_conv2d as a layer, in pixels.
struct DepthwiseConv2dLayer {
  std::int64_t multiplier = 1;  // filters of each channel
  RowsCols kernel{3, 3};
  RowsCols strides{1, 1};
  Padding padding = Padding::same;
  bool bias = true;
};

/// images [N,C,H,W], each channel with its own weights of w [C,multiplier,kh,kw], plus b [C·multiplier] if
/// asked for → [N,C·multiplier,H',W']. Throws as conv2d.
Output depthwise_conv2d(const Scope& s, Output x, const DepthwiseConv2dLayer& layer, const std::string& name);

/// conv2d without a bias, and the batch_norm `<name>_norm` behind it.
Output conv2d_norm(const Scope& s, Output x, Conv2dLayer layer, const std::string& name,
                   const BatchNormLayer& norm);

/// The layer that makes images larger (kolo::conv2d_transpose), with w [C,filters,kh,kw], plus b [filters] if
/// asked for: H' = H · stride with Padding::same. Throws as conv2d.
Output conv2d_transpose(const Scope& s, Output x, const Conv2dLayer& layer, const std::string& name);

/// x [N,C] or [N,C,…] normalized channel by channel with the statistics of the batch
/// (core/ops/normalization.h), scaled by gamma [C], which starts at 1, and shifted by beta [C], from 0.
/// moving_mean and moving_variance (from 0 and 1) are not trainable; they are saved, and moved by the train
/// op of Optimizer::minimize, on each rank with its own samples. inference_form gives the network that uses
/// them. Throws InvalidArgumentError unless x has two dimensions or more and its number of channels is known.
Output batch_norm(const Scope& s, Output x, const std::string& name, const BatchNormLayer& layer = {});

/// batch_norm with the statistics of all ranks' samples (collectives/graph/collective_ops.h): variables of
/// the same names, so that a graph with batch_norm, which has an inference form, takes its checkpoints. x's
/// number of dimensions must be known.
Output sync_batch_norm(const Scope& s, Output x, const std::string& name, const BatchNormLayer& layer = {});

/// x [N,…,D] normalized along its last dimension (core/ops/normalization.h), scaled by gamma [D], which
/// starts at 1, and shifted by beta [D], from 0. Throws InvalidArgumentError unless D is known.
Output layer_norm(const Scope& s, Output x, const std::string& name, double epsilon = 1e-5);

/// Numbers of local_response_norm.
struct LocalResponseNormLayer {
  std::int64_t radius = 5;  // channels on each side that count, ≥ 0
  double bias = 1;          // > 0
  double alpha = 1;
  double beta = 0.5;
};

/// images x [N,C,H,W] → x / (bias + alpha · Σ x²)^beta, the sum over the channels up to `radius` away at the
/// same place: Krizhevsky, Sutskever, Hinton, NIPS 2012, section 3.3, with TensorFlow's names and defaults.
/// Has no variables. Throws InvalidArgumentError unless x has four dimensions and its number of channels is
/// known, and for a radius below 0.
Output local_response_norm(const Scope& s, Output x, const LocalResponseNormLayer& layer = {});

/// x [N, …] → [N, elements of the rest]. Throws InvalidArgumentError unless the rest of the shape is known.
Output flatten(const Scope& s, Output x);

// Terms of the loss beside that of the labels, such as weight decay.

/// `penalty`, a scalar, joins those of the graph.
void add_penalty(const Scope& s, Output penalty);
/// `loss` and all of the graph's penalties, added; `loss` itself where there are none.
Output with_penalties(const Scope& s, Output loss);

}  // namespace kolo::models
