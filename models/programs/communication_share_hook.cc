#include <kolo/models/programs/communication_share_hook.h>

#include <algorithm>

#include <kolo/collectives/schedule/gradient_buckets.h>

namespace kolo::models {

SessionRunArgs CommunicationShareHook::before_run(RunContext&) {
  SessionRunArgs args;
  asked_ = due_();
  if (asked_) args.options.trace_level = TraceLevel::full_trace;
  return args;
}

void CommunicationShareHook::after_run(RunContext&, const RunValues& values) {
  share_.reset();
  if (!asked_ || values.trace == nullptr || values.trace->events.empty()) return;
  auto start = values.trace->events.front().start, end = values.trace->events.front().end;
  for (const TraceEvent& event : values.trace->events) {
    start = std::min(start, event.start);
    end = std::max(end, event.end);
  }
  const std::chrono::duration<double> step = end - start;
  if (step.count() > 0) share_ = std::min(1.0, reduction_overlap(*values.trace).waiting / step);
}

}  // namespace kolo::models
