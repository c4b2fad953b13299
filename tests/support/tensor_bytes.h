#pragma once

#include <string>

#include <kolo/core/tensor/tensor.h>

namespace kolo {

/// All elements, bit for bit.
inline std::string bytes_of(const Tensor& tensor) {
  return tensor.bytes() == 0 ? "" : std::string(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
}

}  // namespace kolo
