#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_windows.h>
#include <kolo/core/kernels/cuda/windows.h>

namespace kolo::cuda {
namespace {

Windows windows_of(const KernelInit& init) {
  const Shape& images = init.input_shape(0);
  const auto [rows, cols] =
      window_sides(init, images, rows_cols(init.attr<std::vector<std::int64_t>>("window"), "window"));
  return {.planes = images.dim(0) * images.dim(1), .rows = rows, .cols = cols};
}

class MaxPoolKernel final : public Kernel {
 public:
  explicit MaxPoolKernel(KernelInit& init)
      : windows_(windows_of(init)), cell_type_(element_type(init.output_dtype(1))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_max_pool(stream_of(context), {.of = windows_,
                                                    .x = context.input(0).data<float>(),
                                                    .y = context.output(0).data<float>(),
                                                    .cells = context.output(1).raw(),
                                                    .cell_type = cell_type_}),
               "max_pool");
  }

 private:
  Windows windows_;
  ElementType cell_type_;
};

// Of gradients input 0, the images, is there for its shape alone. Cells that no window has count for nothing.
class MaxPoolGradKernel final : public Kernel {
 public:
  explicit MaxPoolGradKernel(KernelInit& init)
      : windows_(windows_of(init)), cell_type_(element_type(init.input_dtype(1))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_max_pool_grad(stream_of(context), {.of = windows_,
                                                         .cells = context.input(1).raw(),
                                                         .cell_type = cell_type_,
                                                         .dy = context.input(2).data<float>(),
                                                         .dx = context.output(0).data<float>()}),
               "the gradient of max_pool");
  }

 private:
  Windows windows_;
  ElementType cell_type_;
};

class AvgPoolKernel final : public Kernel {
 public:
  explicit AvgPoolKernel(KernelInit& init) : windows_(windows_of(init)) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_avg_pool(stream_of(context), {.of = windows_,
                                                    .x = context.input(0).data<float>(),
                                                    .y = context.output(0).data<float>()}),
               "avg_pool");
  }

 private:
  Windows windows_;
};

class AvgPoolGradKernel final : public Kernel {
 public:
  explicit AvgPoolGradKernel(KernelInit& init) : windows_(windows_of(init)) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_avg_pool_grad(stream_of(context), {.of = windows_,
                                                         .dy = context.input(1).data<float>(),
                                                         .dx = context.output(0).data<float>()}),
               "the gradient of avg_pool");
  }

 private:
  Windows windows_;
};

const RegisterGpuKernel pooling_kernels[] = {
    {"MaxPool", {DType::f32}, planned<MaxPoolKernel>()},
    {"MaxPoolGrad", {DType::f32}, planned<MaxPoolGradKernel>()},
    {"AvgPool", {DType::f32}, planned<AvgPoolKernel>()},
    {"AvgPoolGrad", {DType::f32}, planned<AvgPoolGradKernel>()},
};

}  // namespace
}  // namespace kolo::cuda
