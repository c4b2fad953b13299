#include <kolo/core/kernels/kernel.h>

#include <algorithm>
#include <atomic>
#include <map>

#include <kolo/core/base/error.h>
#include <kolo/core/device/plugin.h>

namespace kolo {
namespace {

std::map<std::string, std::vector<KernelEntry>>& registry() {
  static std::map<std::string, std::vector<KernelEntry>> kernels;
  return kernels;
}

// What was registered for the devices of a plug-in joins the rest; from then on the table stays as it is,
// since plans on other threads read it.
std::atomic<bool> is_complete = false;  // set by complete_registry(), read by who comes too late

bool complete_registry() {
  if (const PluginContents* plugin = gpu_plugin())
    for (const auto& register_kernel : plugin->kernels) register_kernel();
  return is_complete = true;
}

class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(void (*function)(KernelContext&)) : function_(function) {}
  void compute(KernelContext& context) override { function_(context); }

 private:
  void (*function_)(KernelContext&);
};

}  // namespace

std::unique_ptr<Kernel> KernelInit::decline(std::string reason) {
  decline_reason_ = std::move(reason);
  return nullptr;
}

void AsyncKernel::compute(KernelContext&) {
  throw InternalError("an asynchronous kernel was called as a synchronous one");
}

RegisterKernel::RegisterKernel(std::string op, std::string device_type, std::vector<DType> types,
                               KernelFactory make, int priority, SourceLine place) {
  if (is_complete)
    throw InternalError("the kernel of {} at {} was registered after a plan or placement had read the table",
                        op, place.text());
  auto& entries = registry()[op];
  const auto behind = std::find_if(entries.begin(), entries.end(),
                                   [&](const KernelEntry& e) { return e.priority < priority; });
  entries.insert(behind, {std::move(device_type), std::move(types), std::move(make), priority, place});
}

RegisterKernel::RegisterKernel(std::string op, std::string device_type, std::vector<DType> types,
                               void (*compute)(KernelContext&), int priority, SourceLine place)
    : RegisterKernel(
          std::move(op), std::move(device_type), std::move(types),
          KernelFactory([compute](KernelInit&) { return std::make_unique<FunctionKernel>(compute); }),
          priority, place) {}

const std::vector<KernelEntry>& kernels_of(const std::string& op) {
  static const std::vector<KernelEntry> none;
  [[maybe_unused]] static const bool complete = complete_registry();
  const auto found = registry().find(op);
  return found == registry().end() ? none : found->second;
}

bool accepts(const KernelEntry& entry, DType type, bool has_type) {
  return !has_type || entry.types.empty() ||
         std::find(entry.types.begin(), entry.types.end(), type) != entry.types.end();
}

}  // namespace kolo
