#include <kolo/core/runtime/detail/memory_report.h>

#include <map>
#include <set>
#include <string>

namespace kolo::detail {

std::vector<DeviceMemory> memory_report(const Plan& plan, const Frame& frame) {
  std::map<std::string, std::set<const Buffer*>> used;
  std::set<const Buffer*> fed;
  for (const PlanNode& node : plan.nodes())
    for (int o = 0; o < node.num_outputs; ++o)
      if (const Buffer* buffer = frame.values[static_cast<std::size_t>(node.first_value + o)].buffer().get())
        (node.op == kFeedOp ? fed : used[node.device]).insert(buffer);

  std::vector<DeviceMemory> report;
  for (const auto& [device, buffers] : used) {
    DeviceMemory memory{.device = device};
    for (const Buffer* buffer : buffers) {
      if (fed.count(buffer) > 0) continue;
      memory.peak_bytes += buffer->bytes();
      if (buffer != frame.arena.get()) continue;
      memory.planned_bytes = buffer->bytes();
      memory.unplanned_bytes = plan.memory().unplanned_bytes;
    }
    report.push_back(memory);
  }
  return report;
}

}  // namespace kolo::detail
