// How the nodes of a plan wait for each other's streams. Contract: plan.h.
#include <kolo/core/runtime/plan.h>

#include <utility>

#include <kolo/core/passes/fences.h>
#include <kolo/core/runtime/node_log.h>

namespace kolo {

void Plan::order_streams(const Kernels& made) {
  ordered_.resize(nodes_.size());
  for (std::size_t p = 0; p < nodes_.size(); ++p) {
    Kernel* const kernel = made.kernels[order_[p]].get();
    const StreamKernel* const on_stream = stream_kernel(kernel);
    for (const int successor : nodes_[p].successors)
      ordered_[successor].before.push_back(static_cast<int>(p));
    ordered_[p].stream = on_stream != nullptr ? &on_stream->stream() : nullptr;
    ordered_[p].runs_ahead = on_stream != nullptr && dynamic_cast<AsyncKernel*>(kernel) == nullptr;
    ordered_[p].is_name = kernel == nullptr || graph_.nodes[order_[p]].schema->is_view();
    ordered_[p].is_fence = nodes_[p].op == kFenceOp;
    ordered_[p].can_be_skipped = nodes_[p].can_be_skipped;
  }
  waits_ = stream_waits(ordered_);
}

void Plan::join_streams(Frame& frame, const std::vector<std::size_t>& scratch_bytes) const {
  for (std::size_t p = 0; p < nodes_.size(); ++p) {
    StreamKernel* const on_stream = stream_kernel(frame.kernels[p].get());
    for (const int b : waits_[p].ends) on_stream->comes_behind(*stream_kernel(frame.kernels[b].get()));
    for (const int f : waits_[p].fences) on_stream->comes_behind_fence(*frame.kernels[f]);
  }
  OrderLog* const log = OrderLog::active();
  if (log == nullptr) return;
  for (std::size_t p = 0; p < nodes_.size(); ++p) {
    std::unique_ptr<Kernel>& kernel = frame.kernels[p];
    if (kernel == nullptr || ordered_[p].is_name) continue;
    const int graph_node = order_[p];
    const auto mark = [&](int of) { return OrderLog::Range{&frame.contexts[of], 1}; };
    NodeLog of_node{.log = *log,
                    .node = graph_.nodes[graph_node],
                    .scratch_bytes = scratch_bytes[graph_node],
                    .token = node_token(frame, static_cast<int>(p)),
                    .before = node_token(frame, -1),
                    .mark = mark(static_cast<int>(p)),
                    .controls = {}};
    for (const int control : of_node.node.control_inputs) {
      const int c = position_[control];
      if (!ordered_[c].is_name) of_node.controls.push_back(mark(c));
      else
        for (const int b : ordered_[c].before) of_node.controls.push_back(mark(b));
    }
    for (const int b : ordered_[p].before) of_node.before.append(" ").append(node_token(frame, b));
    if (StreamKernel* const on_stream = stream_kernel(kernel.get())) on_stream->set_log(std::move(of_node));
    else kernel = logged(std::move(kernel), std::move(of_node));
  }
}

}  // namespace kolo
