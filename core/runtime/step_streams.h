// What a run has put into the streams of GPUs: it may still be under way when all of the run's nodes are
// over.
#pragma once

#include <exception>
#include <functional>
#include <vector>

#include <kolo/core/device/stream.h>
#include <kolo/core/runtime/plan.h>
#include <kolo/core/runtime/trace.h>

namespace kolo::detail {

/// Of one run. It uses the frame's memory, whether the run failed or not, so the run waits for its end. The
/// run's caller uses it, but for failure(), which the callers of inner runs use too.
class StepStreams {
 public:
  StepStreams(Frame& frame, const std::vector<Stream*>& streams) : frame_(frame), streams_(streams) {}

  bool empty() const { return streams_.empty(); }
  /// What has failed in a stream, asked for now; nullptr: nothing.
  std::exception_ptr failure() const;
  /// What has not begun there does not begin.
  void skip(std::exception_ptr error) { frame_.stream_errors->note(std::move(error)); }
  /// Until all is over. Returns what failed there, else nullptr. run_failure: why the run has failed or is to
  /// fail, else nullptr, asked again and again. 10 s after it has an answer the frame is lost: a GPU that
  /// hangs must not hold a run for ever.
  std::exception_ptr wait(const std::function<std::exception_ptr()>& run_failure);
  /// The times of the nodes there.
  void append_to(StepTrace& trace, const std::vector<PlanNode>& nodes, const StepTable& table) const;

 private:
  Frame& frame_;
  const std::vector<Stream*>& streams_;
};

}  // namespace kolo::detail
