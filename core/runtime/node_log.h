// The nodes of a plan in the order checker's log. Only where one is written.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <kolo/core/device/order_log.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo {

struct Frame;

/// One node of one frame. A token stands for its end, for the executor; who comes behind it waits for that.
struct NodeLog {
  OrderLog& log;
  const StepNode& node;
  std::size_t scratch_bytes;
  std::string token;
  std::string before;  // the tokens of those that it comes behind, by spaces
  // A control edge is an order without memory of its own: the one writes its context, the other reads it.
  OrderLog::Range mark;
  std::vector<OrderLog::Range> controls;

  void begin() const { log.begin(before); }
  void use(const std::string& actor, const KernelContext& context) const;
  void end() const { log.record(OrderLog::this_thread(), token); }
  /// Of a kernel that uses its memory until it ends, perhaps on another thread: that is when it is written
  /// down.
  void begin_asynchronous() const;
  void end_asynchronous(const KernelContext& context) const;
};

/// The token of the node at `position`; of −1: of the start of the frame's run.
std::string node_token(const Frame& frame, int position);
/// The start of a run, which its nodes come behind, and its end: what the caller does comes behind theirs,
/// and it reads what it has asked for. fetches: indices into the frame's `values`; −1 for an operation.
void log_begin(const Frame& frame);
void log_end(const Frame& frame, int nodes, const std::vector<int>& fetches, const Tensor* values);

/// Of a kernel that the host runs.
std::unique_ptr<Kernel> logged(std::unique_ptr<Kernel> kernel, NodeLog log);

}  // namespace kolo
