// For kernels that hand on, as it is, a value that they did not compute into their output themselves.
#pragma once

#include <vector>

#include <kolo/core/kernels/kernel.h>

namespace kolo {

/// Knows which outputs of a kernel have planned memory, and which get a tensor in each step: texts, and
/// those whose shape only a step tells.
class PassedOutputs {
 public:
  explicit PassedOutputs(const KernelInit& init);

  /// Output `output` becomes what `value` is; free of cost where it lies in that memory already.
  void pass_on(const KernelContext& context, int output, const Tensor& value) const;
  /// Output `output` becomes zeros of the type and shape of `like`.
  void fill_with_zeros(const KernelContext& context, int output, const Tensor& like) const;

 private:
  std::vector<bool> planned_;
};

}  // namespace kolo
