#include <algorithm>
#include <cstdint>

#include <kolo/core/kernels/cpu/detail/gemm.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

detail::GemmShape gemm_shape(const Shape& a, const Shape& product, bool transpose_a, bool transpose_b) {
  return {product.dim(0), a.dim(transpose_a ? 0 : 1), product.dim(1), transpose_a, transpose_b};
}

std::unique_ptr<Kernel> make_onednn_matmul(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0, 1}, [](const KernelInit& in) {
    return detail::plan_gemm(gemm_shape(in.input_shape(0), in.output_shape(0), in.attr<bool>("transpose_a"),
                                        in.attr<bool>("transpose_b")));
  });
}

// The plain loop: any type, any strides; for gradient checks in f64 and for matrices without elements.
template <typename T>
class PlainMatmul final : public Kernel {
 public:
  explicit PlainMatmul(const KernelInit& init)
      : transpose_a_(init.attr<bool>("transpose_a")), transpose_b_(init.attr<bool>("transpose_b")) {}

  void compute(KernelContext& context) override {
    const auto shape =
        gemm_shape(context.input(0).shape(), context.output(0).shape(), transpose_a_, transpose_b_);
    const T *a = context.input(0).data<T>(), *b = context.input(1).data<T>();
    T* c = context.output(0).data<T>();
    parallel_for(shape.rows, 1,
                 [&](std::int64_t begin, std::int64_t end) { multiply_rows(shape, a, b, c, begin, end); });
  }

 private:
  // Blocks of the inner dimension, so that a block's rows of b stay in cache while all rows of a pass.
  void multiply_rows(const detail::GemmShape& shape, const T* a, const T* b, T* c, std::int64_t begin,
                     std::int64_t end) const {
    const std::int64_t a_row = transpose_a_ ? 1 : shape.inner, a_inner = transpose_a_ ? shape.rows : 1;
    const std::int64_t b_inner = transpose_b_ ? 1 : shape.cols, b_col = transpose_b_ ? shape.inner : 1;
    std::fill(c + begin * shape.cols, c + end * shape.cols, T(0));
    for (std::int64_t block = 0; block < shape.inner; block += kInnerBlock)
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t k = block; k < std::min(block + kInnerBlock, shape.inner); ++k) {
          const T factor = a[i * a_row + k * a_inner];
          for (std::int64_t j = 0; j < shape.cols; ++j)
            c[i * shape.cols + j] += factor * b[k * b_inner + j * b_col];
        }
  }

  static constexpr std::int64_t kInnerBlock = 64;
  bool transpose_a_;
  bool transpose_b_;
};

template <typename T>
std::unique_ptr<Kernel> make_plain_matmul(KernelInit& init) {
  return std::make_unique<PlainMatmul<T>>(init);
}

const RegisterKernel onednn_matmul("MatMul", "CPU", {DType::f32}, make_onednn_matmul, 1);
const RegisterKernel plain_matmul_f32("MatMul", "CPU", {DType::f32}, make_plain_matmul<float>);
const RegisterKernel plain_matmul_f64("MatMul", "CPU", {DType::f64}, make_plain_matmul<double>);

}  // namespace
}  // namespace kolo
