// What a libtorch training needs of kolo: equal parameters at the start, averaged gradients in every step.
#pragma once

#include <memory>
#include <vector>

#include <torch/nn/module.h>

#include <kolo/collectives/schedule/gradient_buckets.h>

/// Gives all ranks rank 0's parameters and buffers. Collective.
void broadcast_module(const torch::nn::Module& model);

/// Lets the gradients of a module live in kolo's buckets and marks each as ready when backward() has written
/// it. In each step: zero(), backward(), wait(), the optimizer's step(). Made once, on all ranks, when the
/// module has all its parameters; they must be dense and of one device, the CPU, and the module's
/// zero_grad(true) would take them out of the buckets.
class AveragedGradients {
 public:
  explicit AveragedGradients(const torch::nn::Module& model);

  /// backward() adds to what is there.
  void zero();
  /// Returns when every gradient is the average over the ranks. A parameter that the loss does not depend on
  /// must be handed to kolo by buckets().absent().
  void wait() { buckets_.wait(); }
  kolo::GradientBuckets& buckets() { return buckets_; }

 private:
  kolo::GradientBuckets buckets_;
  std::vector<torch::Tensor> gradients_;
  // A parameter refers to its own only weakly, and the hooks hang on these.
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;
};
