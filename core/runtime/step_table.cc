#include <kolo/core/runtime/step_table.h>

#include <kolo/core/device/device_name.h>
#include <kolo/core/runtime/plan.h>

namespace kolo {
namespace {

constexpr float kFirstEstimate = 1e8f;  // cycles: expensive until it has been measured often enough

bool is_on_cpu(const PlanNode& node) {
  const auto spec = parse_device_spec(node.device);
  return spec && spec->type.value_or("CPU") == "CPU";
}

}  // namespace

StepTable::StepTable(const std::vector<PlanNode>& nodes, const Frame& frame)
    : size_(static_cast<int>(nodes.size())), nodes_(std::make_unique<Node[]>(nodes.size())) {
  for (int i = 0; i < size_; ++i) {
    const PlanNode& source = nodes[i];
    Node& node = nodes_[i];
    node.pending = source.pending;
    node.first_successor = static_cast<int>(successors_.size());
    node.num_successors = static_cast<int>(source.successors.size());
    successors_.insert(successors_.end(), source.successors.begin(), source.successors.end());
    if (source.pending == 0) sources_.push_back(i);
    if (!source.must_be_initialized.empty()) node.flags |= kChecksVariables;
    if (source.is_conditional()) node.flags |= kIsConditional;
    if (frame.async_kernels[i] != nullptr) node.flags |= kIsAsynchronous;
    else if (source.runs_kernel) node.flags |= kRunsKernel;
    if ((node.flags & kRunsKernel) != 0 && is_on_cpu(source)) node.cycles = kFirstEstimate;
  }
}

}  // namespace kolo
