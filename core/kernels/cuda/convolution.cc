// The direct convolution, for what cuDNN declines.
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_windows.h>
#include <kolo/core/kernels/cuda/windows.h>

namespace kolo::cuda {
namespace {

class ForwardKernel final : public Kernel {
 public:
  explicit ForwardKernel(KernelInit& init)
      : shape_(convolution_of(init, init.input_shape(0), init.output_shape(0))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_convolution(stream_of(context), {.shape = shape_,
                                                       .images = context.input(0).data<float>(),
                                                       .weights = context.input(1).data<float>(),
                                                       .results = context.output(0).data<float>()}),
               "conv2d");
  }

 private:
  Convolution shape_;
};

// Also the transposed convolution, whose input 0 are the results of the one that it turns around.
class ImagesKernel final : public Kernel {
 public:
  ImagesKernel(KernelInit& init, int results)
      : results_(results), shape_(convolution_of(init, init.output_shape(0), init.input_shape(results))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_convolution_images(stream_of(context), {.shape = shape_,
                                                              .weights = context.input(1).data<float>(),
                                                              .dy = context.input(results_).data<float>(),
                                                              .images = context.output(0).data<float>()}),
               "the gradient of conv2d's images");
  }

 private:
  int results_;  // the input that is like them
  Convolution shape_;
};

class WeightsKernel final : public Kernel {
 public:
  explicit WeightsKernel(KernelInit& init)
      : shape_(convolution_of(init, init.input_shape(0), init.input_shape(2))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_convolution_weights(stream_of(context), {.shape = shape_,
                                                               .images = context.input(0).data<float>(),
                                                               .dy = context.input(2).data<float>(),
                                                               .weights = context.output(0).data<float>()}),
               "the gradient of conv2d's weights");
  }

 private:
  Convolution shape_;
};

const RegisterGpuKernel convolution_kernels[] = {
    {"Conv2D", {DType::f32}, planned<ForwardKernel>()},
    {"Conv2DBackpropInput", {DType::f32}, planned<ImagesKernel>(2)},
    {"Conv2DTranspose", {DType::f32}, planned<ImagesKernel>(0)},
    {"Conv2DBackpropFilter", {DType::f32}, planned<WeightsKernel>()},
};

}  // namespace
}  // namespace kolo::cuda
