#include <kolo/core/passes/cpu_kernels.h>

#include <algorithm>
#include <vector>

#include <kolo/core/kernels/kernel.h>

namespace kolo {

bool has_cpu_kernel(const StepGraph& graph, const StepNode& node, int threads) {
  std::vector<KernelInit::Value> inputs, outputs;
  for (const StepValue in : node.inputs) inputs.push_back({graph.dtype(in), graph.shape(in)});
  for (std::size_t o = 0; o < node.dtypes.size(); ++o) outputs.push_back({node.dtypes[o], node.shapes[o]});
  const auto& kernels = kernels_of(node.schema->name());
  return std::any_of(kernels.begin(), kernels.end(), [&](const KernelEntry& kernel) {
    if (kernel.device_type != "CPU" || !accepts(kernel, inputs[0].dtype, true)) return false;
    KernelInit init(node.name, node.attrs, inputs, outputs, threads);
    return kernel.make(init) != nullptr;
  });
}

}  // namespace kolo
