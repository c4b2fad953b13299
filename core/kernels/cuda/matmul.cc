// The plain product, for what cuBLASLt declines.
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/products.h>

namespace kolo::cuda {
namespace {

class MatmulKernel final : public Kernel {
 public:
  explicit MatmulKernel(KernelInit& init) : product_(product_of(init)) {}
  void compute(KernelContext& context) override { multiply(context, product_); }

 private:
  Product product_;
};

const RegisterGpuKernel matmul_kernels[] = {
    {"MatMul", {DType::f32}, planned<MatmulKernel>()},
    {"BatchMatMul", {DType::f32}, planned<MatmulKernel>()},
};

}  // namespace
}  // namespace kolo::cuda
