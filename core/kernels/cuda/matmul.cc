// The plain product, for what cuBLASLt declines.
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_matmul.h>
#include <kolo/core/kernels/cuda/products.h>

namespace kolo::cuda {
namespace {

class MatmulKernel final : public Kernel {
 public:
  explicit MatmulKernel(KernelInit& init) : product_(product_of(init)) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_matmul(stream_of(context), {.a = context.input(0).data<float>(),
                                                  .b = context.input(1).data<float>(),
                                                  .c = context.output(0).data<float>(),
                                                  .batch = product_.batch,
                                                  .rows = product_.rows,
                                                  .inner = product_.inner,
                                                  .cols = product_.cols,
                                                  .transpose_a = product_.transpose_a,
                                                  .transpose_b = product_.transpose_b}),
               "matmul");
  }

 private:
  Product product_;
};

const RegisterGpuKernel matmul_kernels[] = {
    {"MatMul", {DType::f32}, planned<MatmulKernel>()},
    {"BatchMatMul", {DType::f32}, planned<MatmulKernel>()},
};

}  // namespace
}  // namespace kolo::cuda
