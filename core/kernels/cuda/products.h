// What a node multiplies, and the plain way to do it.
#pragma once

#include <cstdint>

#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_matmul.h>

namespace kolo::cuda {

/// [batch, rows, inner] · [batch, inner, cols]; a transposed operand is stored with the last two exchanged.
struct Product {
  std::int64_t batch;
  std::int64_t rows;
  std::int64_t inner;
  std::int64_t cols;
  bool transpose_a;
  bool transpose_b;
};

/// Of a MatMul or BatchMatMul, whose shapes are known.
inline Product product_of(const KernelInit& init) {
  const Shape &a = init.input_shape(0), &c = init.output_shape(0);
  const auto transpose_a = init.attr<bool>("transpose_a"), transpose_b = init.attr<bool>("transpose_b");
  Product product{1, c.dim(-2), a.dim(transpose_a ? -2 : -1), c.dim(-1), transpose_a, transpose_b};
  for (int axis = 0; axis + 2 < c.rank(); ++axis) product.batch *= c.dim(axis);
  return product;
}

/// By the plain kernel, which takes any product.
inline void multiply(const KernelContext& context, const Product& product) {
  check_cuda(launch_matmul(stream_of(context), {.a = context.input(0).data<float>(),
                                                .b = context.input(1).data<float>(),
                                                .c = context.output(0).data<float>(),
                                                .batch = product.batch,
                                                .rows = product.rows,
                                                .inner = product.inner,
                                                .cols = product.cols,
                                                .transpose_a = product.transpose_a,
                                                .transpose_b = product.transpose_b}),
             "matmul");
}

}  // namespace kolo::cuda
