// What the host and a GPU compute alike: nvcc compiles the headers of this folder for both, any other
// compiler for the host. They include nothing of CUDA's and nothing of kolo's but each other.
#pragma once

#include <kolo/core/base/host_device.h>

namespace kolo::elements {

/// Without the library's, which compilers drop where they are told that there is no NaN. False for whole
/// numbers.
template <typename T>
KOLO_HOST_DEVICE bool is_nan(T x) {
  return x != x;  // NOLINT(misc-redundant-expression)
}

}  // namespace kolo::elements
