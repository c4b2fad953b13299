#include <algorithm>
#include <cstdint>

#include <kolo/core/kernels/cpu/gemm.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

detail::GemmShape gemm_shape(const Shape& a, const Shape& product, bool transpose_a, bool transpose_b) {
  return {product.dim(-2), a.dim(transpose_a ? -2 : -1), product.dim(-1), transpose_a, transpose_b};
}

// How many products: 1 for matrices.
std::int64_t batch_of(const Shape& product) {
  std::int64_t batch = 1;
  for (int axis = 0; axis + 2 < product.rank(); ++axis) batch *= product.dim(axis);
  return batch;
}

std::unique_ptr<Kernel> make_onednn_matmul(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0, 1}, [](const KernelInit& in) {
    return detail::plan_gemm(gemm_shape(in.input_shape(0), in.output_shape(0), in.attr<bool>("transpose_a"),
                                        in.attr<bool>("transpose_b")),
                             batch_of(in.output_shape(0)));
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
    // Row r of all products is row r % rows of product r / rows.
    parallel_for(batch_of(context.output(0).shape()) * shape.rows, 1,
                 [&](std::int64_t begin, std::int64_t end) {
                   while (begin < end) {
                     const std::int64_t i = begin / shape.rows, first = begin % shape.rows;
                     const std::int64_t last = std::min(shape.rows, first + end - begin);
                     multiply_rows(shape, a + i * shape.rows * shape.inner, b + i * shape.inner * shape.cols,
                                   c + i * shape.rows * shape.cols, first, last);
                     begin += last - first;
                   }
                 });
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
const RegisterKernel onednn_batch("BatchMatMul", "CPU", {DType::f32}, make_onednn_matmul, 1);
const RegisterKernel plain_batch_f32("BatchMatMul", "CPU", {DType::f32}, make_plain_matmul<float>);
const RegisterKernel plain_batch_f64("BatchMatMul", "CPU", {DType::f64}, make_plain_matmul<double>);

}  // namespace
}  // namespace kolo
