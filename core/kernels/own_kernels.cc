#include <kolo/core/kernels/own_kernels.h>

#include <fmt/format.h>

#include <atomic>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <kolo/core/base/env.h>
#include <kolo/core/kernels/own_kernels_table.h>

namespace kolo::detail {
namespace {

static_assert(kKernelsMeasured == kOwnKernels.size());

KernelSource source_of_environment() {
  const std::string name = env_choice("KOLO_KERNELS", "table", {"table", "own", "library"});
  return name == "own" ? KernelSource::own : name == "library" ? KernelSource::library : KernelSource::table;
}

std::atomic<KernelSource>& chosen_source() {
  static std::atomic<KernelSource> source{source_of_environment()};
  return source;
}

Processor find_processor() {
  Processor found;
#if defined(__x86_64__)
  unsigned most = 0, signature = 0, b = 0, c = 0, d = 0;
  char vendor[13] = {};
  if (__get_cpuid(0, &most, &b, &c, &d) == 0) return found;
  std::memcpy(vendor, &b, 4), std::memcpy(vendor + 4, &d, 4), std::memcpy(vendor + 8, &c, 4);
  found.vendor = vendor;
  if (__get_cpuid(1, &signature, &b, &c, &d) == 0) return found;
  // Intel's and AMD's manuals, CPUID leaf 1: the extended fields count for families 6 and 15 on.
  const int family = (signature >> 8) & 15, model = (signature >> 4) & 15;
  found.family = family == 15 ? 15 + ((signature >> 20) & 255) : family;
  found.model = family == 15 || family == 6 ? model + ((signature >> 16) & 15) * 16 : model;
#endif
  return found;
}

}  // namespace

std::string_view name_of(OwnKernel kernel) {
  switch (kernel) {
    case OwnKernel::packed_product: return "packed_product";
    case OwnKernel::streamed_product: return "streamed_product";
    case OwnKernel::summed_product: return "summed_product";
    case OwnKernel::thin_product: return "thin_product";
    case OwnKernel::winograd: return "winograd";
    case OwnKernel::pointwise: return "pointwise";
    case OwnKernel::winograd_for_bf16: return "winograd_for_bf16";
  }
  return "";
}

std::string_view name_of(KernelSource source) {
  switch (source) {
    case KernelSource::table: return "table";
    case KernelSource::own: return "own";
    case KernelSource::library: return "library";
  }
  return "";
}

KernelSource kernel_source() { return chosen_source(); }
void set_kernel_source(KernelSource source) { chosen_source() = source; }

const Processor& this_processor() {
  static const Processor processor = find_processor();
  return processor;
}

bool table_prefers_own(OwnKernel kernel, const Processor& processor) {
  const auto place = static_cast<std::size_t>(kernel);
  for (const OwnKernelsOfProcessor& row : kMeasuredProcessors)
    if (row.vendor == processor.vendor && row.family == processor.family &&
        (row.model == kAnyModel || row.model == processor.model))
      return row.takes_own[place];
  return kOnOthers[place];
}

bool prefers_own(OwnKernel kernel) {
  switch (kernel_source()) {
    case KernelSource::own: return true;
    case KernelSource::library: return false;
    case KernelSource::table: return table_prefers_own(kernel, this_processor());
  }
  return false;
}

std::string why_not_own(OwnKernel kernel) {
  if (kernel_source() == KernelSource::library)
    return fmt::format("{}: KOLO_KERNELS=library", name_of(kernel));
  return fmt::format("{}: the library's is faster on this processor (KOLO_KERNELS=own takes it nevertheless)",
                     name_of(kernel));
}

}  // namespace kolo::detail
