#include <kolo/core/runtime/aliased_kernel.h>

#include <cstring>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

class AliasedKernel final : public Kernel {
 public:
  AliasedKernel(std::unique_ptr<Kernel> kernel, const StepNode& node, Device& device)
      : kernel_(std::move(kernel)), node_(node), device_(device) {}

  void compute(KernelContext& context) override {
    const std::size_t count = context.inputs.size();
    std::vector<Tensor> inputs, outputs;
    std::vector<const Tensor*> pointers;
    std::vector<VariableStorage> variables(count);
    std::vector<VariableStorage*> storages(count, nullptr);
    inputs.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const int input = static_cast<int>(i);
      const bool written = node_.schema->input_spec(input).updated;
      inputs.push_back(alias(*context.inputs[i], written, node_.schema->is_host_input(input)));
      pointers.push_back(&inputs[i]);
      if (context.variables[i] == nullptr) continue;
      const VariableStorage& variable = *context.variables[i];
      storages[i] = &variables[i];
      variables[i].name = variable.name;
      variables[i].value = alias(variable.value, written, false);
      variables[i].device = variable.device;
      variables[i].initialized = variable.initialized.load();
    }
    for (std::size_t o = 0; o < context.outputs.size(); ++o)
      outputs.push_back(alias(context.outputs[o], true, is_on_host(o)));
    const std::vector<Tensor> given = outputs;

    KernelContext seen = context;
    seen.inputs = pointers;
    seen.outputs = outputs;
    seen.variables = storages;
    if (seen.scratch_memory != nullptr) seen.scratch_memory = device_.alias(seen.scratch_memory, 0, true);
    kernel_->compute(seen);
    // Of others the host may be reading it.
    if (node_.schema->is_branch_guard()) context.skipped = seen.skipped;
    for (std::size_t i = 0; i < count; ++i)
      if (storages[i] != nullptr && variables[i].initialized) context.variables[i]->initialized = true;
    for (std::size_t o = 0; o < outputs.size(); ++o)
      if (outputs[o].buffer() != given[o].buffer())
        context.outputs[o] = is_on_host(o) ? outputs[o] : moved(outputs[o]);
  }

 private:
  bool is_on_host(std::size_t output) const {
    return node_.schema->is_host_output(static_cast<int>(output), node_.dtypes[output]);
  }

  Tensor alias(const Tensor& tensor, bool writable, bool may_be_on_host) const {
    if (tensor.bytes() == 0 || tensor.dtype() == DType::string) return tensor;
    std::byte* const there = device_.alias(tensor.raw(), tensor.bytes(), writable);
    if (there != nullptr)
      return Tensor(tensor.dtype(), tensor.shape(), std::make_shared<Buffer>(there, tensor.bytes()), 0);
    if (!may_be_on_host)
      throw InternalError("the kernel is given a tensor of {}{} that is not in the memory of {}",
                          tensor.dtype(), tensor.shape(), device_.local_name());
    return tensor;
  }

  Tensor moved(const Tensor& made) const {
    if (made.bytes() == 0 || made.dtype() == DType::string) return made;
    Tensor there(made.dtype(), made.shape(), device_.allocator());
    std::memcpy(device_.alias(there.raw(), there.bytes(), true), made.raw(), made.bytes());
    return there;
  }

  const std::unique_ptr<Kernel> kernel_;
  const StepNode& node_;
  Device& device_;
};

}  // namespace

std::unique_ptr<Kernel> with_aliases(std::unique_ptr<Kernel> kernel, const StepNode& node, Device& device) {
  return std::make_unique<AliasedKernel>(std::move(kernel), node, device);
}

}  // namespace kolo
