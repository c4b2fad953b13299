#include <kolo/core/runtime/step_streams.h>

#include <chrono>
#include <optional>
#include <utility>

#include <kolo/core/base/log.h>
#include <kolo/core/runtime/stream_kernels.h>

namespace kolo::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLostAfter(10);

}  // namespace

std::exception_ptr StepStreams::failure() const {
  try {
    if (std::exception_ptr error = frame_.stream_errors->first()) return error;
    for (Stream* const stream : streams_) stream->check();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

std::exception_ptr StepStreams::wait(const std::function<std::exception_ptr()>& run_failure) {
  std::optional<Clock::time_point> failed_at;
  const auto gives_up = [&] {
    std::exception_ptr error = run_failure();
    if (!error) return false;
    const auto now = Clock::now();
    if (!failed_at) failed_at = now, skip(std::move(error));
    return now - *failed_at > kLostAfter;
  };
  try {
    frame_.lost = !frame_.ends->wait(gives_up, /*is_whole=*/!run_failure());
  } catch (...) {
    std::exception_ptr earlier = frame_.stream_errors->take();  // names the node that it comes from
    return earlier ? earlier : std::current_exception();
  }
  if (!frame_.lost) return frame_.stream_errors->take();
  log_error("a GPU has not finished what this step gave it {} s after the step failed: its memory is lost",
            kLostAfter.count());
  return nullptr;
}

void StepStreams::append_to(StepTrace& trace, const std::vector<PlanNode>& nodes,
                            const StepTable& table) const {
  for (int i = 0; i < table.size(); ++i) {
    if ((table[i].flags & StepTable::kIsOnStream) == 0 || frame_.contexts[i].skipped) continue;
    const auto times = times_on_stream(*frame_.kernels[i]);
    trace.events.push_back(
        {nodes[i].name, nodes[i].op, nodes[i].lane, times->start, times->end, times->only_put_there});
  }
}

}  // namespace kolo::detail
