// Layers: the ops of a neural network together with their variables.
#pragma once

#include <cstdint>
#include <string>

#include <kolo/core/graph/scope.h>
#include <kolo/core/ops/sliding_window.h>

namespace kolo::models {

// A layer named "fc1" makes the variables fc1/w and fc1/b. Weights start by Glorot's uniform rule, from the
// graph's seed and their own names, so that a layer starts alike whatever stands before it; biases start at
// 0.

/// x [N, inputs] · w [inputs, units] + b [units] → [N, units].
/// Throws InvalidArgumentError unless x is a matrix whose number of columns is known.
Output dense(const Scope& s, Output x, std::int64_t units, const std::string& name);

struct Conv2dLayer {
  std::int64_t filters;  // channels of the result
  RowsCols kernel{3, 3};
  RowsCols strides{1, 1};
  Padding padding = Padding::same;
};

/// images [N,C,H,W] with weights w [filters,C,kh,kw], plus b [filters] → [N,filters,H',W'].
/// Throws InvalidArgumentError unless x has four dimensions and its number of channels is known.
Output conv2d(const Scope& s, Output x, const Conv2dLayer& layer, const std::string& name);

/// x [N, …] → [N, elements of the rest]. Throws InvalidArgumentError unless the rest of the shape is known.
Output flatten(const Scope& s, Output x);

}  // namespace kolo::models
