// Kernels that look at no element, and so are the same on every device.
#pragma once

#include <string>

#include <kolo/core/kernels/kernel.h>

namespace kolo {

/// A placeholder that is fed never runs.
class PlaceholderKernel final : public Kernel {
 public:
  explicit PlaceholderKernel(KernelInit& init);
  /// Throws InvalidArgumentError, which says what to feed.
  void compute(KernelContext&) override;

 private:
  std::string message_;
};

/// What tells of the shape of input 0, into an output on the host. They throw InvalidArgumentError where a
/// number does not fit in i32.
void shape_kernel(KernelContext& context);
void size_kernel(KernelContext& context);
void rank_kernel(KernelContext& context);

/// Throws InvalidArgumentError unless input 1 has the shape of the variable that input 0 is.
void check_assigned_shape(const KernelContext& context);

}  // namespace kolo
