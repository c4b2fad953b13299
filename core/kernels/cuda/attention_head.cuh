// Where one head's numbers lie.
#pragma once

#include <kolo/core/kernels/cuda/launch_attention.h>

namespace kolo::cuda {

/// One head of one sequence: places are `stride` apart in qkv, `width` in y; queries, keys and values of a
/// place are `width` apart.
struct Head {
  KOLO_HOST_DEVICE Head(const AttentionShape& of, std::int64_t number)
      : width(of.heads * of.size),
        stride(3 * width),
        in_y(number / of.heads * of.places * width + number % of.heads * of.size),
        in_qkv(number / of.heads * of.places * stride + number % of.heads * of.size),
        in_log_sum(number * of.places) {}
  std::int64_t width, stride, in_y, in_qkv, in_log_sum;
};

}  // namespace kolo::cuda
