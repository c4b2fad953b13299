// A convolution as its kernels are made for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/bf16.h>
#include <kolo/core/ops/convolution.h>

namespace kolo::detail {

/// The three passes of one convolution share this: what the images, weights and results are, and where the
/// window stands.
struct Convolution {
  Shape images;   // [N,C,H,W]
  Shape weights;  // [out,C,kh,kw]
  Shape results;  // [N,out,H',W']
  WindowAxis rows;
  WindowAxis cols;
  std::int64_t groups;
  bool in_bf16;

  // images: of the output in Conv2DTranspose, of input 0 elsewhere. results: of input 0 in Conv2DTranspose,
  // of dy in the gradient ops, of the output in the forward op.
  static Convolution of(const KernelInit& init, const Shape& images, const Shape& results) {
    return of(init, images, init.input_shape(1), results);
  }
  static Convolution of(const KernelInit& init, const Shape& images, const Shape& weights,
                        const Shape& results) {
    const auto [rows, cols] =
        window_axes(images, {weights.dim(2), weights.dim(3)},
                    rows_cols(init.attr<std::vector<std::int64_t>>("strides"), "conv2d: strides"),
                    padding_from_name(init.attr<std::string>("padding")));
    return {images, weights, results, rows, cols, init.attr<std::int64_t>("groups"), init.is_marked(kInBf16)};
  }
  // As oneDNN has it: groups are a dimension of their own.
  Shape grouped_weights() const {
    if (groups == 1) return weights;
    return {groups, weights.dim(0) / groups, weights.dim(1), weights.dim(2), weights.dim(3)};
  }
};

}  // namespace kolo::detail
