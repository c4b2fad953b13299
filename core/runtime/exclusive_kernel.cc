#include <kolo/core/runtime/exclusive_kernel.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace kolo {
namespace {

class ExclusiveKernel final : public Kernel {
 public:
  ExclusiveKernel(std::unique_ptr<Kernel> kernel, std::vector<VariableStorage*> variables)
      : kernel_(std::move(kernel)), variables_(std::move(variables)) {}

  void compute(KernelContext& context) override { hold_from(0, context); }

 private:
  void hold_from(std::size_t first, KernelContext& context) {
    if (first == variables_.size()) return kernel_->compute(context);
    MutexLock lock(*variables_[first]->uses);
    hold_from(first + 1, context);
  }

  const std::unique_ptr<Kernel> kernel_;
  const std::vector<VariableStorage*> variables_;
};

}  // namespace

std::unique_ptr<Kernel> while_nobody_else_uses(std::unique_ptr<Kernel> kernel,
                                               std::vector<VariableStorage*> variables) {
  // One order for all who take several: by name, and of one name in two containers by the place in memory.
  const auto key = [](const VariableStorage* v) { return std::tie(v->name, v->uses); };
  std::sort(variables.begin(), variables.end(),
            [&](const VariableStorage* a, const VariableStorage* b) { return key(a) < key(b); });
  variables.erase(std::unique(variables.begin(), variables.end()), variables.end());
  if (variables.empty()) return kernel;
  return std::make_unique<ExclusiveKernel>(std::move(kernel), std::move(variables));
}

}  // namespace kolo
