// When each node of a step ran, and where.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace kolo {

struct TraceEvent {
  std::string name;      // the node's, or what a communication thread did
  std::string category;  // the op, or "reduce"
  std::string lane;      // the device and thread, such as "CPU:0 thread 1" or "communication"
  std::chrono::steady_clock::time_point start;
  std::chrono::steady_clock::time_point end;
};

/// Filled in by Session::run where one is passed.
struct StepTrace {
  std::vector<TraceEvent> events;
  std::size_t arena_bytes = 0;      // planned memory of activations and temporaries
  std::size_t unplanned_bytes = 0;  // the sum of all such buffers, had each its own
};

/// {"traceEvents":[…]} for chrome://tracing and Perfetto: times in µs from the first event on, `rank` as the
/// process.
std::string chrome_trace_json(const StepTrace& trace, int rank);

}  // namespace kolo
