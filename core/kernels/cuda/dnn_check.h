// Whether an engine of cuDNN computes what it promises. Its notes do not tell: of weights' gradients on an
// H100, cuDNN 9.14's engine 17 is off by 1e-3 of the result for windows of 5 × 5, without a note of it, and
// engine 1 is wrong altogether where strided windows have one zero more behind the image than before it. So
// each engine is measured once, on the GPU that it is to run on, before it is taken.
#pragma once

#include <functional>
#include <string>

#include <kolo/core/device/cuda/handles.h>
#include <kolo/core/kernels/cuda/cudnn_graph.h>
#include <kolo/core/kernels/cuda/launch_windows.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::cuda {

/// One convolution of random numbers by kolo's own kernel, for engines to be measured by.
class ConvolutionCheck {
 public:
  /// shape: of the whole batch, of which enough images are computed. memory: the GPU's, for as long as the
  /// check lives: about twice what the convolution itself takes. The GPU is current, here and below. Throws
  /// as check_cuda.
  ConvolutionCheck(const CudaApi& api, Allocator& memory, ConvolutionPass pass, const Convolution& shape,
                   bool allow_tf32);

  /// Enqueues an engine's work on these operands.
  using Run = std::function<void(cudaStream_t stream, const DnnPlan::Operands& operands)>;
  /// What is wrong with what `run` computes, in words: numbers, other bits in a second run; "" where nothing
  /// is. Waits for the GPU. Throws as check_cuda, and what run throws.
  std::string fault_of(const Run& run, std::int64_t workspace_bytes);

 private:
  // ‖x − expected‖ ÷ ‖expected‖, of what is compared.
  double distance(const Tensor& x, const Tensor& expected);
  void run_into(const Tensor& made, const Run& run, const Tensor& workspace);

  const CudaApi& api_;
  Allocator& memory_;
  const CudaStream stream_;
  const ConvolutionPass pass_;
  const double limit_;
  Tensor images_, weights_, results_;  // the one that the pass makes is kolo's
  std::int64_t compared_ = 0;          // elements of it
  Tensor squares_;
};

}  // namespace kolo::cuda
