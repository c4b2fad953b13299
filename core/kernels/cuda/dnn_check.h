// Whether an engine of cuDNN computes what it promises. Its notes do not tell: of weights' gradients on an
// H100, cuDNN 9.14's engine 17 is off by 1e-3 of the result for windows of 5 × 5, without a note of it, and
// engine 1 is wrong altogether where strided windows have one zero more behind the image than before it. So
// each engine is measured once, on the GPU that it is to run on, before it is taken.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <kolo/core/device/cuda/handles.h>
#include <kolo/core/kernels/cuda/cudnn_graph.h>
#include <kolo/core/kernels/cuda/launch_windows.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::cuda {

/// What the pass makes, by kolo's own kernel. Throws as check_cuda.
void convolve_directly(cudaStream_t stream, ConvolutionPass pass, const Convolution& shape, float* images,
                       float* weights, float* results);

/// One convolution of random numbers by kolo's own kernel, for engines to be measured by. One thread.
class ConvolutionCheck {
 public:
  /// Products of kolo's kernel: 2 ms of an H100, 20 for a gradient, 40 for that of strided images.
  static constexpr std::int64_t kMostProducts = std::int64_t{1} << 31;

  /// shape: of the whole batch, of which the last images are computed, as many as make most_products; one at
  /// least. memory: the GPU's, for as long as the check lives: the convolution's, and its result twice more.
  /// The GPU is current, here and below. Throws as check_cuda.
  ConvolutionCheck(const CudaApi& api, Allocator& memory, ConvolutionPass pass, const Convolution& shape,
                   bool allow_tf32, std::int64_t most_products = kMostProducts);

  /// Enqueues an engine's work on these operands.
  using Run = std::function<void(cudaStream_t stream, const DnnPlan::Operands& operands)>;
  /// What is wrong with what `run` computes, in words: numbers, other bits in another run; "" where nothing
  /// is. Waits for the GPU. Throws as check_cuda, and what run throws; it can be asked again after that.
  std::string fault_of(const Run& run, std::int64_t workspace_bytes);
  /// Milliseconds of one `run`, the mean of three behind a first. Waits and throws likewise.
  double time_of(const Run& run, std::int64_t workspace_bytes);

 private:
  struct Distance {
    double apart, whole;  // Σ (x − expected)², Σ expected²; NaN where one is
  };
  Distance distance(const float* x, const float* expected, std::int64_t elements);
  void prepare();
  void run_into(const Tensor& made, const Run& run);
  void put(const Tensor& made, const Run& run);
  const Tensor& made_by_kolo() const;

  const CudaApi& api_;
  Allocator& memory_;
  const CudaStream stream_;
  const ConvolutionPass pass_;
  const Convolution shape_;
  const std::int64_t computed_;  // images
  const double limit_;
  Tensor images_, weights_, results_;  // the one that the pass makes is kolo's
  Tensor made_, again_;
  Tensor squares_, workspace_;
  bool prepared_ = false;
};

}  // namespace kolo::cuda
