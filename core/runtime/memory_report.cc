#include <kolo/core/runtime/memory_report.h>

#include <map>
#include <set>
#include <string>

namespace kolo::detail {

std::vector<DeviceMemory> memory_report(const Plan& plan, const Frame& frame) {
  std::map<std::string, DeviceMemory> by_device;
  std::set<const Buffer*> counted;  // what was fed and the arenas, to begin with
  const std::vector<Arena>& arenas = plan.memory().arenas;
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    by_device[arenas[i].device] = {.device = arenas[i].device,
                                   .planned_bytes = arenas[i].bytes,
                                   .unplanned_bytes = arenas[i].unplanned_bytes,
                                   .peak_bytes = arenas[i].bytes};
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

}  // namespace kolo::detail
