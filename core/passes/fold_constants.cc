// A pass: what depends on constants alone is computed once. Contract: pipeline.h.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo {
namespace {

// A constant stays in memory as long as the plan; what is larger is cheaper to compute into the arena.
constexpr std::size_t kLargestConstant = std::size_t{1} << 20;

bool is_constant(const StepNode& node) { return node.schema->name() == "Const"; }

bool may_be_folded(const StepGraph& graph, const StepNode& node) {
  if (node.schema->is_stateful() || node.schema->is_expanded_by_pass() || node.resource || is_constant(node))
    return false;
  if (node.schema->is_branch_guard() || node.schema->is_branch_join()) return false;
  if (node.dtypes.size() != 1 || node.dtypes[0] == DType::string || !node.shapes[0].is_fully_known())
    return false;
  if (static_cast<std::size_t>(node.shapes[0].elements()) * size_of(node.dtypes[0]) > kLargestConstant)
    return false;
  // A constant that waits for something hands its waiting on to its readers, which a folded one could not.
  return is_on_cpu(node) && std::all_of(node.inputs.begin(), node.inputs.end(), [&](StepValue in) {
           return is_constant(graph.nodes[in.node]) && graph.nodes[in.node].control_inputs.empty();
         });
}

const Tensor& value_of(const StepNode& constant) {
  return std::get<Tensor>(constant.attrs.at("value").value());
}

// The kernel that the plan would take, or null.
std::unique_ptr<Kernel> make_kernel(const StepGraph& graph, const StepNode& node, int threads,
                                    std::size_t& scratch_bytes) {
  std::vector<KernelInit::Value> inputs;
  for (const StepValue in : node.inputs) inputs.push_back({graph.dtype(in), graph.shape(in)});
  const DType type = inputs.empty() ? node.dtypes[0] : inputs[0].dtype;
  for (const KernelEntry& entry : kernels_of(node.schema->name())) {
    if (entry.device_type != "CPU" || !accepts(entry, type, true)) continue;
    KernelInit init(node.name, node.attrs, inputs, {{node.dtypes[0], node.shapes[0]}}, threads);
    if (auto kernel = entry.make(init)) {
      scratch_bytes = init.scratch_bytes();
      return kernel;
    }
  }
  return nullptr;
}

std::optional<Tensor> computed(const StepGraph& graph, const StepNode& node, int threads) {
  std::vector<const Tensor*> inputs;
  for (const StepValue in : node.inputs) inputs.push_back(&value_of(graph.nodes[in.node]));
  if (node.schema->is_view()) return inputs.at(0)->reshaped(node.shapes[0]);
  std::size_t scratch_bytes = 0;
  const auto kernel = make_kernel(graph, node, threads, scratch_bytes);
  if (kernel == nullptr || dynamic_cast<AsyncKernel*>(kernel.get()) != nullptr) return std::nullopt;
  Tensor output(node.dtypes[0], node.shapes[0]);
  const Buffer scratch(cpu_allocator(), scratch_bytes);
  const std::vector<VariableStorage*> no_variables(inputs.size(), nullptr);
  KernelContext context;
  context.inputs = inputs;
  context.outputs = {&output, 1};
  context.variables = no_variables;
  context.scratch_memory = scratch.data();
  kernel->compute(context);
  if (output.dtype() != node.dtypes[0] || output.shape() != node.shapes[0]) return std::nullopt;
  return output;
}

void become_constant(StepNode& node, Tensor value) {
  node.schema = &find_op("Const");
  node.inputs.clear();
  node.attrs = {{"value", std::move(value)}, {"dtype", node.dtypes[0]}};
}

}  // namespace

void fold_constants(StepGraph& graph, int threads) {
  set_intra_op_threads(threads);  // as in the step: the number of threads may decide how a sum is rounded
  for (const int n : topological_order(graph)) {
    StepNode& node = graph.nodes[n];
    if (!may_be_folded(graph, node)) continue;
    try {
      if (auto value = computed(graph, node, threads)) become_constant(node, std::move(*value));
    } catch (const Error&) {
      // The step will run it and say so, if the node is reached.
    }
  }
}

}  // namespace kolo
