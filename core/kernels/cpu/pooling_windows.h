// The windows of a pooling node, as its kernels see them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/kernels/kernel.h>
#include <kolo/core/ops/convolution.h>

namespace kolo::detail {

struct Pooling {
  Shape images;   // [N,C,H,W]
  Shape results;  // [N,C,H',W']
  WindowAxis rows;
  WindowAxis cols;

  static Pooling of(const KernelInit& init, const Shape& results) {
    return of(init, init.input_shape(0), results);
  }
  static Pooling of(const KernelInit& init, const Shape& images, const Shape& results) {
    const auto numbers = [&](const char* attr) {
      return rows_cols(init.attr<std::vector<std::int64_t>>(attr), attr);
    };
    const auto [rows, cols] = window_axes(images, numbers("window"), numbers("strides"),
                                          padding_from_name(init.attr<std::string>("padding")));
    return {images, results, rows, cols};
  }
};

}  // namespace kolo::detail
