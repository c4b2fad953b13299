// What the kernels of batch normalization share, whatever the order of their images.
#pragma once

#include <cstdint>

#include <kolo/core/kernels/kernel.h>

namespace kolo::detail {

/// Inputs 3 and 4, outputs 1 to 4 of BatchNorm: the moving averages after this step. The sample variance, as
/// TensorFlow and PyTorch take it: of one element it is the variance itself, 0. A batch without elements
/// changes nothing.
template <typename T>
void move_averages(KernelContext& context, std::int64_t elements_of_channel, double momentum) {
  const T *mean = context.output(1).data<T>(), *variance = context.output(2).data<T>();
  const T *old_mean = context.input(3).data<T>(), *old_variance = context.input(4).data<T>();
  T *new_mean = context.output(3).data<T>(), *new_variance = context.output(4).data<T>();
  const auto n = static_cast<double>(elements_of_channel);
  const double share = n == 0 ? 0 : 1 - momentum, correction = n > 1 ? n / (n - 1) : 1;
  for (std::int64_t c = 0; c < context.output(1).elements(); ++c) {
    new_mean[c] = static_cast<T>(old_mean[c] + share * (mean[c] - old_mean[c]));
    new_variance[c] = static_cast<T>(old_variance[c] + share * (variance[c] * correction - old_variance[c]));
  }
}

}  // namespace kolo::detail
