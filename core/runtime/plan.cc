#include <kolo/core/runtime/plan.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/keep_for_ever.h>
#include <kolo/core/device/device_allocator.h>
#include <kolo/core/device/device_name.h>
#include <kolo/core/device/device_values.h>
#include <kolo/core/kernels/parallel.h>
#include <kolo/core/kernels/transfer.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/passes/fences.h>
#include <kolo/core/passes/transfer.h>
#include <kolo/core/passes/variable_uses.h>
#include <kolo/core/runtime/aliased_kernel.h>
#include <kolo/core/runtime/exclusive_kernel.h>
#include <kolo/core/runtime/initial_values.h>
#include <kolo/core/runtime/session_devices.h>
#include <kolo/core/runtime/step_kernels.h>
#include <kolo/core/tensor/unused_pages.h>

namespace kolo {
namespace {

using Kind = ValueMemory::Kind;

// Nodes whose output is only another name for memory that exists already.
bool is_name_only(const StepNode& node) {
  return node.schema->is_view() || node.schema->is_variable_storage() || node.schema->name() == "Const" ||
         node.schema->name() == kFeedOp;
}

// A view of what a kernel makes, or of a shape that only a step tells: bound anew in each step.
bool is_dynamic_view(const StepGraph& graph, int n) {
  const StepNode& node = graph.nodes[n];
  if (!node.schema->is_view()) return false;
  if (!node.shapes[0].is_fully_known()) return true;
  const StepValue root = graph.memory_root({n, 0});
  const StepNode& maker = graph.nodes[root.node];
  if (maker.schema->is_variable_storage() || maker.schema->name() == "Const" ||
      maker.schema->name() == kFeedOp)
    return false;
  return !graph.shape(root).is_fully_known() || graph.dtype(root) == DType::string ||
         maker.schema->is_owner_of_outputs();
}

std::vector<std::shared_ptr<Buffer>> allocated(const std::vector<Arena>& arenas, const DeviceSet& devices) {
  std::vector<std::shared_ptr<Buffer>> buffers;
  for (const Arena& arena : arenas) {
    Allocator& memory = arena.pinned_for.empty() ? devices.find(arena.device).allocator()
                                                 : devices.find(arena.pinned_for).host_allocator();
    buffers.push_back(std::make_shared<Buffer>(memory, arena.bytes));
  }
  return buffers;
}

}  // namespace

Plan::Plan(StepGraph graph, PlanEnvironment& environment, StepVotes votes, const std::string& host)
    : graph_(std::move(graph)), environment_(environment), votes_(std::move(votes)) {
  if (!environment_.shares_variables())
    place_initial_values(graph_, [&](const Node& storage) -> const VariableStorage& {
      return environment_.variable(storage);
    });
  Kernels made = make_kernels();
  memory_ = plan_memory(graph_, topological_order(graph_), made.scratch_bytes, host);
  order_ = topological_order(graph_);  // the memory plan has added edges, along its own order
  copy_constants();
  build_nodes(made);
  auto frame = make_frame(std::move(made));
  table_ = std::make_unique<StepTable>(nodes_, *frame, leaders_of({}, nodes_.size()));
  if (!segments_.empty())
    replay_table_ = std::make_unique<StepTable>(nodes_, *frame, leaders_of(segments_, nodes_.size()));
  give_back(std::move(frame));
}

Plan::Kernels Plan::make_kernels() {
  set_intra_op_threads(environment_.intra_op_threads());  // primitives are made for a number of threads
  Kernels made;
  made.kernels.resize(graph_.nodes.size());
  made.scratch_bytes.assign(graph_.nodes.size(), 0);
  made.chosen.resize(graph_.nodes.size());
  for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
    if (is_dynamic_view(graph_, i)) made.kernels[i] = make_view(graph_, graph_.nodes[i]);
    else if (!is_name_only(graph_.nodes[i])) make_kernel(i, made);
  }
  return made;
}

void Plan::make_kernel(int index, Kernels& made) {
  const StepNode& node = graph_.nodes[index];
  Device& device = environment_.devices().find(node.device);
  std::vector<Shape> inputs;
  for (const StepValue in : node.inputs) inputs.push_back(graph_.shape(in));
  auto kernel = make_kernel_for(node, inputs, node.shapes, made.scratch_bytes[index], made.chosen[index]);
  if (dynamic_cast<AsyncKernel*>(kernel.get()) != nullptr) {
    auto* const fence = node.schema->name() == kFenceOp ? static_cast<Stream*>(node.resource.get()) : nullptr;
    Stream* const own = stream_of(node, environment_.devices());
    if (fence != nullptr) kernel = told_of_errors(std::move(kernel), made.errors, *fence);
    else if (own != nullptr && own->native() != nullptr)
      kernel =
          sent_from_stream(std::move(kernel), {*own, node, environment_.intra_op_threads(), made.errors});
    made.kernels[index] = std::move(kernel);
    return;
  }
  if (needs_shapes_of_the_step(graph_, node))
    kernel = follow_shapes(std::move(kernel), graph_, node, device.allocator(),
                           [this, &node](const auto& in, const auto& out, std::size_t& scratch) {
                             KernelOfNode of_these_shapes;
                             return make_kernel_for(node, in, out, scratch, of_these_shapes);
                           });
  if (Stream* const stream = stream_of(node, environment_.devices())) {
    const StreamPlace place{*stream, node, environment_.intra_op_threads(), made.errors};
    const bool waits = stream->native() == nullptr && must_be_waited_for(graph_, node);
    kernel = waits ? waited_on_stream(std::move(kernel), place) : on_stream(std::move(kernel), place);
  } else if (environment_.shares_variables()) {
    kernel = while_nobody_else_uses(std::move(kernel), shared_variables_of(index));
  }
  made.kernels[index] = std::move(kernel);
}

// Those that the node changes, or copies for another task.
std::vector<VariableStorage*> Plan::shared_variables_of(int index) const {
  const StepNode& node = graph_.nodes[index];
  std::vector<VariableStorage*> shared;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.schema->input_spec(static_cast<int>(i)).updated && node.schema->name() != kCopyOp) continue;
    if (const Node* const storage = variable_of(graph_, node.inputs[i]))
      shared.push_back(&environment_.variable(*storage));
  }
  return shared;
}

std::unique_ptr<Kernel> Plan::make_kernel_for(const StepNode& node, const std::vector<Shape>& input_shapes,
                                              const std::vector<Shape>& output_shapes,
                                              std::size_t& scratch_bytes, KernelOfNode& chosen) {
  std::vector<KernelInit::Value> inputs, outputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    inputs.push_back({graph_.dtype(node.inputs[i]), input_shapes[i]});
  for (std::size_t o = 0; o < node.dtypes.size(); ++o) outputs.push_back({node.dtypes[o], output_shapes[o]});
  const bool has_type = !inputs.empty() || !outputs.empty();
  const DType type = !inputs.empty() ? inputs[0].dtype : has_type ? outputs[0].dtype : DType::f32;
  Device& device = environment_.devices().find(node.device);
  const std::string device_type = device.runs_cpu_kernels() ? "CPU" : device.type();
  std::string& reasons = chosen.declined;
  for (const KernelEntry& entry : kernels_of(node.schema->name())) {
    if (entry.device_type != device_type || !accepts(entry, type, has_type)) continue;
    KernelInit init(node.name, node.attrs, inputs, outputs, environment_.intra_op_threads());
    init.set_resource(node.resource);
    init.set_device(device);
    try {
      if (auto kernel = entry.make(init)) {
        scratch_bytes = init.scratch_bytes();
        chosen.alignment = init.alignment();
        chosen.place = entry.place.text();
        const bool is_virtual = device.runs_cpu_kernels() && !device.has_host_memory();
        const bool computes =
            node.schema->name() != kRecvOp && dynamic_cast<AsyncKernel*>(kernel.get()) == nullptr;
        return is_virtual && computes ? with_aliases(std::move(kernel), node, device) : std::move(kernel);
      }
    } catch (const Error& error) {
      throw_error(error.code(), fmt::format("{} [node \"{}\", {} on {}]", error.what(), node.name,
                                            node.schema->name(), node.device));
    }
    reasons +=
        fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", entry.place.text(), init.decline_reason());
  }
  throw NoKernelError(
      fmt::format("no kernel takes node \"{}\", {} of {} on {}{}{}", node.name, node.schema->name(), type,
                  node.device, reasons.empty() ? "" : ": ", reasons),
      node.origin, device.type());
}

std::string Plan::lane(const StepNode& node, Kernel* kernel) const {
  const Device& device = environment_.devices().find(node.device);
  if (node.schema->name() == kRecvOp) {
    const Device& from = std::static_pointer_cast<TransferEnds>(node.resource)->from;
    return fmt::format("{} to {}", from.local_name(), device.local_name());
  }
  const StreamKernel* const on_stream = stream_kernel(kernel);
  const bool sends = on_stream != nullptr && on_stream->stream().native() != nullptr &&
                     dynamic_cast<AsyncKernel*>(kernel) != nullptr;
  return on_stream != nullptr && !sends ? device.local_name() + " stream" : "communication";
}

void Plan::copy_constants() {
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const StepNode& node = graph_.nodes[i];
    if (node.schema->name() != "Const" || lies_on_host(graph_, {static_cast<int>(i), 0})) continue;
    device_constants_[static_cast<int>(i)] =
        copy_to_device(node.attrs.at("value").get<Tensor>(), environment_.devices().find(node.device));
  }
}

void Plan::build_nodes(const Kernels& made) {
  position_.resize(order_.size());
  for (std::size_t p = 0; p < order_.size(); ++p) position_[order_[p]] = static_cast<int>(p);
  nodes_.resize(order_.size());
  for (std::size_t p = 0; p < order_.size(); ++p) {
    const StepNode& source = graph_.nodes[order_[p]];
    PlanNode& node = nodes_[p];
    node.name = source.name;
    node.op = source.schema->name();
    node.device = source.device;
    node.kernel = made.chosen[order_[p]];
    node.lane = lane(source, made.kernels[order_[p]].get());
    if (StreamKernel* const kernel = stream_kernel(made.kernels[order_[p]].get()))
      if (std::find(streams_.begin(), streams_.end(), &kernel->stream()) == streams_.end())
        streams_.push_back(&kernel->stream());
    node.first_value = num_values_;
    node.num_outputs = static_cast<int>(source.dtypes.size());
    num_values_ += node.num_outputs;
    node.runs_kernel = !is_name_only(source) || is_dynamic_view(graph_, order_[p]);
    std::set<int> before;
    for (std::size_t i = 0; i < source.inputs.size(); ++i) {
      const StepValue in = source.inputs[i];
      before.insert(position_[in.node]);
      node.inputs.push_back(value_index(in));
      const StepNode& producer = graph_.nodes[in.node];
      if (producer.schema->is_variable_storage() &&
          !source.schema->input_spec(static_cast<int>(i)).initialized_by_op)
        node.must_be_initialized.push_back(&environment_.variable(whole_storage(*producer.origin)));
    }
    for (const int control : source.control_inputs) before.insert(position_[control]);
    for (const int earlier : source.after) before.insert(position_[earlier]);
    find_conditions(node, source);
    node.pending = static_cast<int>(before.size());
    for (const int b : before) nodes_[b].successors.push_back(static_cast<int>(p));
    if (source.schema->name() == kFeedOp)
      fed_values_.push_back({node.first_value, source.attrs.at("feed").get<int>(), source.shapes[0]});
    // Fed tensors change from run to run: what is a view of one is bound anew with it.
    for (int o = 0; o < node.num_outputs; ++o) {
      const ValueMemory& memory = memory_.values[order_[p]][o];
      if (memory.kind == Kind::feed && source.schema->is_view() && source.shapes[o].is_fully_known())
        fed_values_.push_back({node.first_value + o,
                               graph_.nodes[memory.root.node].attrs.at("feed").get<int>(), source.shapes[o]});
    }
  }
  if (!streams_.empty()) order_streams(made);
  for (const StepValue fetch : graph_.fetches) {
    fetches_.push_back(fetch.node < 0 ? -1 : value_index(fetch));
    fetched_nodes_.push_back(fetch.node < 0 ? -1 : position_[fetch.node]);
  }
}

// What the node waits for stands before it in the plan and has its conditions already.
void Plan::find_conditions(PlanNode& node, const StepNode& source) {
  const auto can_be_skipped = [&](int graph_node) { return nodes_[position_[graph_node]].can_be_skipped; };
  bool all_inputs = true;
  for (const StepValue in : source.inputs) {
    all_inputs &= can_be_skipped(in.node);
    if (source.schema->is_branch_join()) node.joined.push_back(position_[in.node]);
    else if (can_be_skipped(in.node)) node.skipped_with.push_back(position_[in.node]);
  }
  for (const int control : source.control_inputs)
    if (can_be_skipped(control)) node.skipped_with.push_back(position_[control]);
  node.can_be_skipped = source.schema->is_branch_guard() || !node.skipped_with.empty() ||
                        (source.schema->is_branch_join() && all_inputs);
}

bool Plan::was_computed(const Frame& frame, std::size_t i) const {
  return fetched_nodes_[i] < 0 || !frame.contexts[fetched_nodes_[i]].skipped;
}

int Plan::feed_of_fetch(std::size_t i) const {
  return graph_.nodes[memory_of(i).root.node].attrs.at("feed").get<int>();
}

std::unique_ptr<Frame> Plan::make_frame(Kernels made) {
  auto frame = std::make_unique<Frame>();
  frame->stream_errors = std::move(made.errors);
  const MemoryOwner owner(fmt::format("a step of {} nodes up to \"{}\"", nodes_.size(),
                                      nodes_.empty() ? "" : graph_.nodes[order_.back()].name));
  frame->arenas = allocated(memory_.arenas, environment_.devices());
  frame->values.resize(num_values_);
  std::size_t num_inputs = 0;
  for (const PlanNode& node : nodes_) num_inputs += node.inputs.size();
  frame->input_pointers.reserve(num_inputs);
  frame->variable_pointers.reserve(num_inputs);
  frame->contexts.resize(nodes_.size());
  frame->kernels.resize(nodes_.size());
  frame->async_kernels.resize(nodes_.size());
  frame->happened = std::make_unique<bool[]>(num_inputs);
  frame->memory = std::make_unique<StepMemory>(static_cast<int>(nodes_.size()));
  for (std::size_t p = 0; p < nodes_.size(); ++p) {
    const PlanNode& node = nodes_[p];
    const StepNode& source = graph_.nodes[order_[p]];
    for (int o = 0; o < node.num_outputs; ++o)
      frame->values[node.first_value + o] = tensor_for({order_[p], o}, *frame);
    const std::size_t first_input = frame->input_pointers.size();
    for (const StepValue in : source.inputs) {
      frame->input_pointers.push_back(&frame->values[value_index(in)]);
      const StepNode& producer = graph_.nodes[in.node];
      frame->variable_pointers.push_back(
          producer.schema->is_variable_storage() ? &environment_.variable(*producer.origin) : nullptr);
    }
    KernelContext& context = frame->contexts[p];
    context.inputs = {frame->input_pointers.data() + first_input, source.inputs.size()};
    context.variables = {frame->variable_pointers.data() + first_input, source.inputs.size()};
    context.outputs = {frame->values.data() + node.first_value, static_cast<std::size_t>(node.num_outputs)};
    if (const int arena = memory_.scratch_arenas[order_[p]]; arena >= 0)
      context.scratch_memory = frame->arenas[arena]->data() + memory_.scratch_offsets[order_[p]];
    if (!node.joined.empty()) context.happened = {frame->happened.get() + first_input, node.joined.size()};
    const auto seed = source.attrs.find("seed");
    if (seed != source.attrs.end())
      context.random_state = &environment_.random_state(source.name, seed->second.get<std::int64_t>());
    frame->kernels[p] = std::move(made.kernels[order_[p]]);
  }
  expect_alignment(*frame);
  if (!streams_.empty()) join_streams(*frame, made.scratch_bytes);
  for (std::size_t p = 0; p < nodes_.size(); ++p)
    frame->async_kernels[p] = dynamic_cast<AsyncKernel*>(frame->kernels[p].get());
  if (!streams_.empty())
    frame->ends = std::make_unique<StreamEnds>(streams_, joined_streams()), make_segments(*frame);
  return frame;
}

Tensor Plan::tensor_for(StepValue value, const Frame& frame) {
  const ValueMemory& memory = memory_.values[value.node][value.output];
  const Shape& shape = graph_.shape(value);
  const DType dtype = graph_.dtype(value);
  const StepNode& root = graph_.nodes[memory.root.node];
  if (!shape.is_fully_known()) return Tensor();  // made, or bound, by the kernel
  switch (memory.kind) {
    case Kind::arena: return Tensor(dtype, shape, frame.arenas[memory.arena], memory.offset);
    case Kind::placed: {
      const Placement& placement = graph_.placements.at(memory.root);
      return Tensor(dtype, shape, placement.buffer, placement.offset);
    }
    case Kind::variable: return environment_.variable(*root.origin).value.reshaped(shape);
    case Kind::constant: {
      const auto copy = device_constants_.find(memory.root.node);
      const Tensor here =
          copy != device_constants_.end() ? copy->second : root.attrs.at("value").get<Tensor>();
      return here.reshaped(shape);
    }
    case Kind::feed:     // bound at each run
    case Kind::dynamic:  // made by the kernel
      return Tensor();
  }
  return Tensor();
}

std::unique_ptr<Frame> Plan::take_frame() {
  std::unique_ptr<Frame> frame;
  {
    MutexLock lock(mutex_);
    if (!free_frames_.empty()) {
      frame = std::move(free_frames_.back());
      free_frames_.pop_back();
    }
  }
  if (frame == nullptr) frame = make_frame(make_kernels());
  ++frame->uses;
  return frame;
}

void Plan::give_arenas_back(const Frame& frame) const {
  if (!streams_.empty()) return;  // devices may have mapped the host's memory
  for (std::size_t i = 0; i < frame.arenas.size(); ++i) {
    const Device& device = environment_.devices().find(memory_.arenas[i].device);
    if (device.runs_cpu_kernels() && device.has_host_memory())
      give_pages_back(frame.arenas[i]->data(), frame.arenas[i]->bytes());
  }
}

void Plan::give_back(std::unique_ptr<Frame> frame) {
  if (frame->lost) return detail::keep_for_ever(std::move(frame));  // somebody may yet write there
  // The caller's memory is not ours to keep.
  static const Tensor none;  // assigned by copy: the shape's memory stays for the next run
  for (const FedValue& fed : fed_values_) frame->values[fed.value] = none;
  if (frame->uses == 1) give_arenas_back(*frame);
  MutexLock lock(mutex_);
  free_frames_.push_back(std::move(frame));
}

namespace {

constexpr float kFirstEstimate = 1e8f;  // cycles: expensive until it has been measured often enough

bool is_on_cpu(const PlanNode& node) {
  const auto spec = parse_device_spec(node.device);
  return spec && spec->type.value_or("CPU") == "CPU";
}

}  // namespace

StepTable::StepTable(const std::vector<PlanNode>& nodes, const Frame& frame, const std::vector<int>& leaders)
    : size_(static_cast<int>(nodes.size())), nodes_(std::make_unique<Node[]>(nodes.size())) {
  std::vector<std::set<int>> successors(nodes.size());
  for (int i = 0; i < size_; ++i)
    for (const int successor : nodes[i].successors)
      if (leaders[successor] != leaders[i]) successors[leaders[i]].insert(leaders[successor]);
  for (const std::set<int>& of_one : successors)
    for (const int successor : of_one) ++nodes_[successor].pending;
  for (int i = 0; i < size_; ++i) {
    const PlanNode& source = nodes[i];
    Node& node = nodes_[i];
    if (leaders[i] != i) continue;
    ++count_;
    node.first_successor = static_cast<int>(successors_.size());
    node.num_successors = static_cast<int>(successors[i].size());
    successors_.insert(successors_.end(), successors[i].begin(), successors[i].end());
    if (node.pending == 0) sources_.push_back(i);
    if (!source.must_be_initialized.empty()) node.flags |= kChecksVariables;
    if (source.is_conditional()) node.flags |= kIsConditional;
    if (frame.async_kernels[i] != nullptr) node.flags |= kIsAsynchronous;
    else if (source.runs_kernel) node.flags |= kRunsKernel;
    if ((node.flags & kRunsKernel) != 0 && stream_kernel(frame.kernels[i].get()) != nullptr)
      node.flags |= kIsOnStream;
    if ((node.flags & (kRunsKernel | kIsOnStream)) == kRunsKernel && is_on_cpu(source))
      node.cycles = kFirstEstimate;
  }
}

std::unique_ptr<VariableStorage> part_of_variable(const Node& storage, const VariableStorage& whole) {
  const auto first = storage.attr<std::int64_t>("first");
  auto part = std::make_unique<VariableStorage>();
  part->name = storage.name();
  part->device = whole.device;
  part->value =
      whole.value.reshaped({whole.value.elements()}).rows(first, first + storage.attr<std::int64_t>("count"));
  return part;
}

bool happens(const PlanNode& node, int index, Frame& frame) {
  KernelContext& context = frame.contexts[index];
  context.skipped = false;
  for (const int before : node.skipped_with) context.skipped |= frame.contexts[before].skipped;
  bool any = node.joined.empty();
  for (std::size_t i = 0; i < node.joined.size(); ++i)
    any |= context.happened[i] = !frame.contexts[node.joined[i]].skipped;
  context.skipped |= !any;
  return !context.skipped;
}

}  // namespace kolo
