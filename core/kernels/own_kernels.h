// Which of kolo's own CPU kernels compute where a library's could as well: on each processor those that were
// measured to be faster there.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace kolo::detail {

/// Kernels of kolo's own beside which oneDNN has one.
enum class OwnKernel {
  packed_product,
  streamed_product,
  summed_product,  // the streamed one of many terms: a weight's gradient from many rows
  thin_product,
  winograd,
  pointwise,
  winograd_for_bf16  // the one in f32 where the library would compute the convolution in bf16
};
inline constexpr std::array kOwnKernels{OwnKernel::packed_product,   OwnKernel::streamed_product,
                                        OwnKernel::summed_product,   OwnKernel::thin_product,
                                        OwnKernel::winograd,         OwnKernel::pointwise,
                                        OwnKernel::winograd_for_bf16};
/// As the enumerator is spelt.
std::string_view name_of(OwnKernel kernel);

/// KOLO_KERNELS: "table" (the default) chooses by the processor, "own" and "library" choose one way for all.
enum class KernelSource { table, own, library };
/// As the variable spells it.
std::string_view name_of(KernelSource source);
/// The process's. Throws InvalidArgumentError where KOLO_KERNELS is none of the three. Any thread.
KernelSource kernel_source();
/// For tests and benchmarks that make steps both ways; holds for kernels that are made from now on.
void set_kernel_source(KernelSource source);

/// A processor as its table of kernels knows it: a family of AMD's has one row, Intel's family 6 one for each
/// model.
struct Processor {
  std::string vendor;  // "AuthenticAMD", "GenuineIntel"; "" on other architectures
  int family = 0;
  int model = 0;
};
const Processor& this_processor();
/// What the table says. An unknown processor takes a kernel of its own only where each measured one gained by
/// it, and clearly.
bool table_prefers_own(OwnKernel kernel, const Processor& processor);

/// Whether kernels that are made now take `kernel` where it fits.
bool prefers_own(OwnKernel kernel);
/// For KernelInit::decline: why it does not.
std::string why_not_own(OwnKernel kernel);

}  // namespace kolo::detail
