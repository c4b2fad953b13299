// How the nodes of a plan wait for each other's streams. Contract: plan.h.
#include <kolo/core/runtime/plan.h>

#include <algorithm>
#include <utility>

#include <kolo/core/passes/fences.h>
#include <kolo/core/passes/transfer.h>
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
  put_busiest_stream_first();
  if (!keeps_segments()) return;
  std::vector<bool> repeatable(nodes_.size());
  for (std::size_t p = 0; p < nodes_.size(); ++p)
    repeatable[p] = is_repeatable(static_cast<int>(p), stream_kernel(made.kernels[order_[p]].get()));
  segments_ = find_segments(ordered_, repeatable);
}

// In which the end of a run is waited for.
void Plan::put_busiest_stream_first() {
  const auto nodes_in = [&](const Stream* stream) {
    return std::count_if(ordered_.begin(), ordered_.end(),
                         [&](const OrderedNode& node) { return node.stream == stream; });
  };
  std::stable_sort(streams_.begin(), streams_.end(),
                   [&](const Stream* a, const Stream* b) { return nodes_in(a) > nodes_in(b); });
}

// By stream, whether it has nodes that no node of the first stream waits for in every run.
std::vector<bool> Plan::joined_streams() const {
  std::vector<bool> is_waited_for(nodes_.size());
  for (std::size_t p = 0; p < nodes_.size(); ++p)
    if (ordered_[p].stream == streams_[0] && !nodes_[p].is_conditional())
      for (const int end : waits_[p].ends) is_waited_for[end] = true;
  std::vector<bool> joined;
  for (const Stream* const stream : streams_) {
    bool is_joined = false;
    for (std::size_t p = 0; p < nodes_.size(); ++p)
      is_joined = is_joined || (ordered_[p].stream == stream && !is_waited_for[p]);
    joined.push_back(is_joined);
  }
  return joined;
}

// Whether a run puts the same work on the stream as the run before: on the same memory, by numbers that the
// host does not choose anew, or that lie apart. What draws random numbers has a position that the host
// counts.
bool Plan::is_repeatable(int position, StreamKernel* on_stream) const {
  if (ordered_[position].is_name) return !nodes_[position].runs_kernel;
  const StepNode& node = graph_.nodes[order_[position]];
  const OpSchema& schema = *node.schema;
  const auto is_fixed = [&](StepValue value) {
    const ValueMemory::Kind kind = memory_.values[value.node][value.output].kind;
    return kind != ValueMemory::Kind::feed && kind != ValueMemory::Kind::dynamic;
  };
  if (schema.name() == kRecvOp || schema.is_branch_guard() || schema.is_branch_join()) return false;
  const bool numbers_lie_apart =
      on_stream != nullptr && (on_stream->stream().native() == nullptr || on_stream->numbered() != nullptr);
  if (node.attrs.count("seed") > 0 && !numbers_lie_apart) return false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!is_fixed(node.inputs[i])) return false;
    const bool is_constant =
        memory_.values[node.inputs[i].node][node.inputs[i].output].kind == ValueMemory::Kind::constant;
    if (schema.is_host_input(static_cast<int>(i)) && !is_constant) return false;
  }
  for (int o = 0; o < static_cast<int>(node.dtypes.size()); ++o)
    if (!is_fixed({order_[position], o}) || schema.is_host_output(o, node.dtypes[o])) return false;
  return true;
}

void Plan::make_segments(Frame& frame) const {
  frame.segments.resize(nodes_.size());
  for (const Segment& segment : segments_) {
    std::vector<SegmentMember> members;
    for (int p = segment.first; p <= segment.last; ++p) {
      if (ordered_[p].is_name) continue;
      const auto& variables = nodes_[p].must_be_initialized;
      members.push_back({.kernel = frame.kernels[p].get(),
                         .context = &frame.contexts[p],
                         .must_be_initialized = {variables.begin(), variables.end()},
                         .written = written_by(frame, p)});
    }
    const DeviceSet& devices = environment_.devices();
    frame.segments[segment.first] =
        make_segment_kernel(std::move(members), devices.find(nodes_[segment.first].device),
                            devices.find(host_of(graph_, devices)));
  }
}

std::vector<const Tensor*> Plan::written_by(const Frame& frame, int position) const {
  const StepNode& node = graph_.nodes[order_[position]];
  const KernelContext& context = frame.contexts[position];
  std::vector<const Tensor*> written;
  for (std::size_t o = 0; o < context.outputs.size(); ++o)
    if (!node.schema->is_host_output(static_cast<int>(o), node.dtypes[o]))
      written.push_back(&context.outputs[o]);
  for (std::size_t i = 0; i < context.inputs.size(); ++i)
    if (node.schema->input_spec(static_cast<int>(i)).updated) written.push_back(context.inputs[i]);
  return written;
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
