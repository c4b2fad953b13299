// Numbers that are none: what a training that has diverged leaves behind.
#pragma once

#include <cstdint>
#include <string>

#include <kolo/core/runtime/session.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

struct NonFiniteCount {
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  bool any() const { return nan + infinite > 0; }
};

/// None in types that are not floating point. One pass over the elements.
NonFiniteCount count_non_finite(const Tensor& tensor);
/// `nan in 3 of 640 elements`; "" where all are finite.
std::string non_finite_text(const Tensor& tensor);

/// `variable "fc1/w" holds nan in 3 of 640 elements` of the first trainable variable of the session with such
/// elements; "" where all are finite. One pass over the variables.
std::string non_finite_weight(Session& session);

}  // namespace kolo::detail
