// Kernels whose work on a stream is the same in every step but for a number that the host chooses.
#pragma once

#include <cstdint>
#include <span>

#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/step_number.h>

namespace kolo {

/// So that its work can be kept and given again, it comes in two parts. One thread at a time, as compute(),
/// which needs neither.
class NumberedKernel : public Kernel {
 public:
  /// What compute() would take next. On the host, once for each step, in their order.
  virtual StepNumber next_number(KernelContext& context) = 0;
  /// Puts the numbers, of kernels of its kind on one device, where they are read. On the stream that
  /// context.native_stream is.
  virtual void put_numbers(KernelContext& context, std::span<const StepNumber> numbers) = 0;
  /// As compute(), by the number that lies there when the stream comes to it.
  virtual void compute_by_number(KernelContext& context) = 0;
  /// As compute(), by this number, wherever it came from: what is kept is compared with it.
  virtual void compute_with(KernelContext& context, std::uint64_t number) = 0;
};

}  // namespace kolo
