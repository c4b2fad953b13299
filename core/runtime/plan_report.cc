// What a run has done with a plan's memory.
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/node_error.h>
#include <kolo/core/runtime/plan.h>

namespace kolo {

void Plan::expect_planned_memory(Frame& frame) const {
  if (std::exchange(frame.memory_is_checked, true)) return;
  for (std::size_t p = 0; p < nodes_.size(); ++p)
    for (int o = 0; o < nodes_[p].num_outputs; ++o) {
      const StepValue value{order_[p], o};
      const ValueMemory& memory = memory_.values[value.node][o];
      const Buffer* given = nullptr;
      if (memory.kind == ValueMemory::Kind::arena) given = frame.arenas[memory.arena].get();
      if (memory.kind == ValueMemory::Kind::placed) given = graph_.placements.at(memory.root).buffer.get();
      if (given == nullptr || frame.values[nodes_[p].first_value + o].buffer().get() == given) continue;
      throw InternalError(
          "{} \"{}\" gave its output {} memory of its own, though the plan had given it some; such an op's "
          "schema says owns_outputs",
          nodes_[p].op, nodes_[p].name, o);
    }
}

void Plan::expect_alignment(const Frame& frame) const {
  for (std::size_t p = 0; p < nodes_.size(); ++p) {
    const std::size_t alignment = nodes_[p].kernel.alignment;
    if (alignment == 1) continue;
    const auto expect = [&](const Tensor& operand, const char* kind, std::size_t i) {
      if (operand && reinterpret_cast<std::uintptr_t>(operand.raw()) % alignment != 0)
        throw InternalError("{} {} of {} \"{}\" begins at {}; its kernel takes multiples of {} bytes", kind,
                            i, nodes_[p].op, nodes_[p].name, fmt::ptr(operand.raw()), alignment);
    };
    const KernelContext& context = frame.contexts[p];
    for (std::size_t i = 0; i < context.inputs.size(); ++i) expect(*context.inputs[i], "input", i);
    for (std::size_t o = 0; o < context.outputs.size(); ++o) expect(context.outputs[o], "output", o);
  }
}

}  // namespace kolo

namespace kolo::detail {

std::vector<DeviceMemory> memory_report(const Plan& plan, const Frame& frame) {
  std::map<std::string, DeviceMemory> by_device;
  std::set<const Buffer*> counted;  // what was fed and the arenas, to begin with
  const std::vector<Arena>& arenas = plan.memory().arenas;
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    DeviceMemory& memory = by_device[arenas[i].device];
    memory.device = arenas[i].device;
    memory.planned_bytes += arenas[i].bytes;
    memory.unplanned_bytes += arenas[i].unplanned_bytes;
    memory.peak_bytes += arenas[i].bytes;
    counted.insert(frame.arenas[i].get());
  }
  for (const PlanNode& node : plan.nodes())
    if (node.op == kFeedOp) counted.insert(frame.values[node.first_value].buffer().get());
  for (const PlanNode& node : plan.nodes())
    for (int o = 0; o < node.num_outputs; ++o) {
      const Buffer* buffer = frame.values[node.first_value + o].buffer().get();
      if (buffer == nullptr || !counted.insert(buffer).second) continue;
      DeviceMemory& memory = by_device[node.device];
      memory.device = node.device;
      memory.peak_bytes += buffer->bytes();
    }

  std::vector<DeviceMemory> report;
  for (const auto& [device, memory] : by_device) report.push_back(memory);
  return report;
}

std::vector<KernelChoice> kernel_choices(const Plan& plan) {
  std::vector<KernelChoice> choices;
  for (const PlanNode& node : plan.nodes())
    if (!node.kernel.place.empty())
      choices.push_back({node.name, node.op, node.device, node.kernel.place, node.kernel.declined});
  return choices;
}

}  // namespace kolo::detail
