#include <kolo/core/cluster/master/run_metadata.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace kolo::detail {
namespace {

template <typename T>
void append(std::vector<T>& list, std::vector<T>& more) {
  list.insert(list.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

void merge_metadata(RunMetadata& step, RunMetadata part, int process) {
  for (TraceEvent& event : part.step_stats.events) event.process = process;
  append(step.step_stats.events, part.step_stats.events);
  step.step_stats.arena_bytes += part.step_stats.arena_bytes;
  step.step_stats.unplanned_bytes += part.step_stats.unplanned_bytes;
  append(step.memory, part.memory);
  std::sort(step.memory.begin(), step.memory.end(),
            [](const DeviceMemory& a, const DeviceMemory& b) { return a.device < b.device; });
  append(step.kernels, part.kernels);
}

}  // namespace kolo::detail
