#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_windows.h>
#include <kolo/core/kernels/cuda/windows.h>

namespace kolo::cuda {
namespace {

std::array<WindowSide, 2> sides(const KernelInit& init) {
  return window_sides(init, init.input_shape(0),
                      rows_cols(init.attr<std::vector<std::int64_t>>("window"), "window"));
}
std::int64_t planes(const KernelInit& init) {
  return init.input_shape(0).dim(0) * init.input_shape(0).dim(1);
}

class MaxPoolKernel final : public Kernel {
 public:
  explicit MaxPoolKernel(KernelInit& init)
      : cell_type_(element_type(init.output_dtype(1))), planes_(planes(init)), sides_(sides(init)) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_max_pool(stream_of(context), {.x = context.input(0).data<float>(),
                                                    .y = context.output(0).data<float>(),
                                                    .cells = context.output(1).raw(),
                                                    .cell_type = cell_type_,
                                                    .planes = planes_,
                                                    .rows = sides_[0],
                                                    .cols = sides_[1]}),
               "max_pool");
  }

 private:
  ElementType cell_type_;
  std::int64_t planes_;
  std::array<WindowSide, 2> sides_;
};

// Input 0, the images, is there for its shape alone. Cells that no window has count for nothing.
class MaxPoolGradKernel final : public Kernel {
 public:
  explicit MaxPoolGradKernel(KernelInit& init)
      : cell_type_(element_type(init.input_dtype(1))), planes_(planes(init)), sides_(sides(init)) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_max_pool_grad(stream_of(context), {.cells = context.input(1).raw(),
                                                         .cell_type = cell_type_,
                                                         .dy = context.input(2).data<float>(),
                                                         .dx = context.output(0).data<float>(),
                                                         .planes = planes_,
                                                         .rows = sides_[0],
                                                         .cols = sides_[1]}),
               "the gradient of max_pool");
  }

 private:
  ElementType cell_type_;
  std::int64_t planes_;
  std::array<WindowSide, 2> sides_;
};

const RegisterGpuKernel kernels[] = {
    {"MaxPool", {DType::f32}, planned<MaxPoolKernel>()},
    {"MaxPoolGrad", {DType::f32}, planned<MaxPoolGradKernel>()},
};

}  // namespace
}  // namespace kolo::cuda
