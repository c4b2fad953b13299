// Values shifted and scaled to mean 0 and variance 1: by channel over a batch, or each example by itself.
#pragma once

#include <kolo/core/graph/scope.h>

namespace kolo {

// Batch normalization: each channel is shifted and scaled to mean 0 and variance 1, then to its own offset
// and scale. Ioffe, Szegedy, "Batch normalization", ICML 2015.

/// Numbers of batch_norm.
struct BatchNormOptions {
  double epsilon = 1e-3;   // added to the variance, ≥ 0
  double momentum = 0.99;  // share of its old value that a moving average keeps in a step, 0 … 1
};

/// All but y are [C].
struct BatchNormResult {
  Output y;                // of the shape of x
  Output mean;             // of the batch
  Output variance;         // of the batch: the mean squared deviation, by which y is scaled
  Output moving_mean;      // momentum · old + (1 − momentum) · mean
  Output moving_variance;  // likewise, of the sample variance: variance · n / (n − 1) of n elements a channel
};

/// y = (x − mean) / √(variance + epsilon) · scale + offset, with the statistics of the batch itself: for
/// training. x [N,C] or [N,C,…], f32 or f64; the others [C], of its type. Gradients flow from y to x, scale
/// and offset. The moving averages are new values, which nobody stores by themselves: models::batch_norm
/// does. Its inference form (inference_form.h) is batch_norm_inference with moving_mean and moving_variance.
/// Throws InvalidArgumentError for other shapes and for options out of range.
BatchNormResult batch_norm(const Scope& s, Output x, Output scale, Output offset, Output moving_mean,
                           Output moving_variance, BatchNormOptions options = {});

/// The same with given statistics. Gradients flow to x, scale and offset.
Output batch_norm_inference(const Scope& s, Output x, Output scale, Output offset, Output mean,
                            Output variance, double epsilon = 1e-3);

// Layer normalization: each example by itself. Ba, Kiros, Hinton, arXiv:1607.06450.

/// y = (x − mean) / √(variance + epsilon) · scale + offset, with mean and variance (the mean squared
/// deviation) along the last dimension. x [N,…,D], f32 or f64; scale and offset [D]. Throws
/// InvalidArgumentError for other shapes, or if epsilon is negative.
Output layer_norm(const Scope& s, Output x, Output scale, Output offset, double epsilon = 1e-5);

namespace detail {

// What the pass fuse_norms makes of the two ops of layer normalization where a sum is in front of one, or
// behind the other.

/// Inputs x, scale, offset, added and, if there is one, a bias for each column. sum = x [+ bias] + added; y,
/// mean and inverse_deviation are those of layer_norm(sum). y may take the memory of x.
inline constexpr char kSumLayerNormOp[] = "SumLayerNorm";
/// Inputs of LayerNormGrad, and `added` of x's shape, which dx is added to, and whose memory dx may take.
inline constexpr char kSumLayerNormGradOp[] = "SumLayerNormGrad";

}  // namespace detail
}  // namespace kolo
