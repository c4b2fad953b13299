// When each node of a step ran, and where; what memory the step took.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace kolo {

/// When one node ran, or one piece of communication.
struct TraceEvent {
  std::string name;      // the node's, or what a communication thread did
  std::string category;  // the op, or "reduce"
  std::string lane;      // the device and thread, such as "CPU:0 thread 1" or "communication"
  std::chrono::steady_clock::time_point start;
  std::chrono::steady_clock::time_point end;
  bool only_put_there = false;  // on a GPU's queue: the times are the host's, for that
  int process = 0;  // 0: the one that began the step; others: tasks of its cluster that ran parts of it
};

/// What a run with a trace level has recorded.
struct StepTrace {
  std::vector<TraceEvent> events;   // in the order of their ends, those of other threads than the pool's last
  std::size_t arena_bytes = 0;      // planned memory of activations and temporaries
  std::size_t unplanned_bytes = 0;  // the sum of all such buffers, had each its own
};

/// What one step takes of one device.
struct DeviceMemory {
  std::string device;
  std::size_t planned_bytes = 0;    // the arena that its buffers share
  std::size_t unplanned_bytes = 0;  // the sum of these buffers, had each its own
  std::size_t peak_bytes = 0;       // the arena, the step's variables and buckets, and what kernels made for
                                    // themselves because its size depends on values
};

/// What computes a node of a step.
struct KernelChoice {
  std::string node;
  std::string op;
  std::string device;
  std::string kernel;    // where it is registered: "linalg.cc:84"
  std::string declined;  // kernels that were asked before and could not take it, with the reasons; "" if none
};

/// Filled in by Session::run where one is passed.
struct RunMetadata {
  StepTrace step_stats;               // events: with a trace level other than no_trace
  std::vector<DeviceMemory> memory;   // sorted by device
  std::vector<KernelChoice> kernels;  // in the order of the plan; not of nodes that are but a name for memory
};

/// {"traceEvents":[…]} for chrome://tracing and Perfetto: times in µs from the first event on, `rank` as the
/// process.
std::string chrome_trace_json(const StepTrace& trace, int rank);

}  // namespace kolo
