// What a node multiplies.
#pragma once

#include <cstdint>

#include <kolo/core/kernels/cuda/cuda_kernel.h>

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

}  // namespace kolo::cuda
