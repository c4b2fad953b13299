#include <kolo/core/runtime/plan.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/device/device_name.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/passes/order_updates.h>
#include <kolo/core/passes/place.h>
#include <kolo/core/runtime/loops.h>

namespace kolo {
namespace {

using Kind = ValueMemory::Kind;

// Nodes whose output is only another name for memory that exists already.
bool is_name_only(const StepNode& node) {
  return node.schema->is_view() || node.schema->is_variable_storage() || node.schema->name() == "Const" ||
         node.schema->name() == kFeedOp;
}

bool is_dynamic_view(const StepNode& node) {
  return node.schema->is_view() && !node.shapes[0].is_fully_known();
}

}  // namespace

std::unique_ptr<Plan> Plan::compile(const StepSignature& signature, PlanEnvironment& environment) {
  StepGraph graph = prune(signature);
  place(graph, environment.devices(), environment.allow_soft_placement());
  std::vector<std::shared_ptr<StepAgreement>> agreements;
  for (const StepNode& node : graph.nodes)
    if (node.origin != nullptr && agreement_factory(node.schema->name()) != nullptr)
      if (auto agreement = environment.agreement(*node.origin)) agreements.push_back(std::move(agreement));
  // A plain session compares at the first run that reaches a schedule; where it was done before, this costs
  // nothing.
  for (const auto& agreement : agreements) agreement->compare();
  for (const Pass pass : registered_passes()) pass(graph, environment);
  order_updates(graph);
  for (StepNode& node : graph.nodes)
    if (auto loop = compile_loop(graph, node, environment)) node.resource = std::move(loop);

  std::unique_ptr<Plan> plan(new Plan(std::move(graph), environment));
  plan->agreements_ = std::move(agreements);
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::size_t> scratch_bytes;
  plan->make_kernels(kernels, scratch_bytes);
  plan->memory_ = plan_memory(plan->graph_, topological_order(plan->graph_), scratch_bytes);
  plan->order_ = topological_order(plan->graph_);  // the memory plan has added edges, along its own order
  plan->build_nodes();
  plan->give_back(plan->make_frame(std::move(kernels)));
  return plan;
}

void Plan::make_kernels(std::vector<std::unique_ptr<Kernel>>& kernels,
                        std::vector<std::size_t>& scratch_bytes) {
  set_intra_op_threads(environment_.intra_op_threads());  // primitives are made for a number of threads
  kernels.resize(graph_.nodes.size());
  scratch_bytes.assign(graph_.nodes.size(), 0);
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const StepNode& node = graph_.nodes[i];
    if (is_name_only(node) && !is_dynamic_view(node)) continue;
    kernels[i] = make_kernel(node, scratch_bytes[i]);
  }
}

std::unique_ptr<Kernel> Plan::make_kernel(const StepNode& node, std::size_t& scratch_bytes) {
  std::vector<KernelInit::Value> inputs, outputs;
  for (const StepValue& in : node.inputs) inputs.push_back({graph_.dtype(in), graph_.shape(in)});
  for (std::size_t o = 0; o < node.dtypes.size(); ++o) outputs.push_back({node.dtypes[o], node.shapes[o]});
  const bool has_type = !inputs.empty() || !outputs.empty();
  const DType type = !inputs.empty() ? inputs[0].dtype : has_type ? outputs[0].dtype : DType::f32;
  const std::string device_type = parse_device_spec(node.device)->type.value();
  std::string reasons;
  for (const KernelEntry& entry : kernels_of(node.schema->name())) {
    if (entry.device_type != device_type || !accepts(entry, type, has_type)) continue;
    KernelInit init(node.name, node.attrs, inputs, outputs, environment_.intra_op_threads());
    init.set_resource(node.resource);
    try {
      if (auto kernel = entry.make(init)) {
        scratch_bytes = init.scratch_bytes();
        return kernel;
      }
    } catch (const Error& error) {
      throw_error(error.code(), fmt::format("{} [node \"{}\", {} on {}]", error.what(), node.name,
                                            node.schema->name(), node.device));
    }
    reasons += (reasons.empty() ? "" : "; ") + init.decline_reason();
  }
  throw UnimplementedError("no kernel takes node \"{}\", {} of {} on {}{}{}", node.name, node.schema->name(),
                           type, node.device, reasons.empty() ? "" : ": ", reasons);
}

void Plan::build_nodes() {
  position_.resize(order_.size());
  for (std::size_t p = 0; p < order_.size(); ++p) position_[order_[p]] = static_cast<int>(p);
  nodes_.resize(order_.size());
  for (std::size_t p = 0; p < order_.size(); ++p) {
    const StepNode& source = graph_.nodes[order_[p]];
    PlanNode& node = nodes_[p];
    node.name = source.name;
    node.op = source.schema->name();
    node.device = source.device;
    node.first_value = num_values_;
    node.num_outputs = static_cast<int>(source.dtypes.size());
    num_values_ += node.num_outputs;
    node.runs_kernel = !is_name_only(source) || is_dynamic_view(source);
    std::set<int> before;
    for (std::size_t i = 0; i < source.inputs.size(); ++i) {
      const StepValue in = source.inputs[i];
      before.insert(position_[in.node]);
      node.inputs.push_back(value_index(in));
      const StepNode& producer = graph_.nodes[in.node];
      if (producer.schema->is_variable_storage() &&
          !source.schema->input_spec(static_cast<int>(i)).initialized_by_op)
        node.must_be_initialized.push_back(&environment_.variable(*producer.origin));
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
      if (memory.kind == Kind::feed && source.schema->is_view())
        fed_values_.push_back({node.first_value + o,
                               graph_.nodes[memory.root.node].attrs.at("feed").get<int>(), source.shapes[o]});
    }
  }
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

std::unique_ptr<Frame> Plan::make_frame(std::vector<std::unique_ptr<Kernel>> kernels) {
  auto frame = std::make_unique<Frame>();
  frame->arena = std::make_shared<Buffer>(cpu_allocator(), memory_.arena_bytes);
  frame->values.resize(num_values_);
  std::size_t num_inputs = 0;
  for (const PlanNode& node : nodes_) num_inputs += node.inputs.size();
  frame->input_pointers.reserve(num_inputs);
  frame->variable_pointers.reserve(num_inputs);
  frame->contexts.resize(nodes_.size());
  frame->kernels.resize(nodes_.size());
  frame->async_kernels.resize(nodes_.size());
  frame->happened = std::make_unique<bool[]>(num_inputs);
  frame->pending = std::make_unique<std::atomic<int>[]>(nodes_.size());
  frame->ready.reserve(nodes_.size());
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
    context.scratch_memory = frame->arena->data() + memory_.scratch_offsets[order_[p]];
    if (!node.joined.empty()) context.happened = {frame->happened.get() + first_input, node.joined.size()};
    const auto seed = source.attrs.find("seed");
    if (seed != source.attrs.end())
      context.random_state = &environment_.random_state(source.name, seed->second.get<std::int64_t>());
    frame->kernels[p] = std::move(kernels[order_[p]]);
    frame->async_kernels[p] = dynamic_cast<AsyncKernel*>(frame->kernels[p].get());
  }
  return frame;
}

Tensor Plan::tensor_for(StepValue value, const Frame& frame) {
  const ValueMemory& memory = memory_.values[value.node][value.output];
  const Shape& shape = graph_.shape(value);
  const DType dtype = graph_.dtype(value);
  const StepNode& root = graph_.nodes[memory.root.node];
  switch (memory.kind) {
    case Kind::arena: return Tensor(dtype, shape, frame.arena, memory.offset);
    case Kind::placed: {
      const Placement& placement = graph_.placements.at(memory.root);
      return Tensor(dtype, shape, placement.buffer, placement.offset);
    }
    case Kind::variable: return environment_.variable(*root.origin).value.reshaped(shape);
    case Kind::constant: return root.attrs.at("value").get<Tensor>().reshaped(shape);
    case Kind::feed:     // bound at each run
    case Kind::dynamic:  // made by the kernel
      return Tensor();
  }
  return Tensor();
}

std::unique_ptr<Frame> Plan::take_frame() {
  {
    MutexLock lock(mutex_);
    if (!free_frames_.empty()) {
      auto frame = std::move(free_frames_.back());
      free_frames_.pop_back();
      return frame;
    }
  }
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::size_t> scratch_bytes;
  make_kernels(kernels, scratch_bytes);
  return make_frame(std::move(kernels));
}

void Plan::give_back(std::unique_ptr<Frame> frame) {
  for (const FedValue& fed : fed_values_)
    frame->values[fed.value] = Tensor();  // the caller's memory is not ours to keep
  MutexLock lock(mutex_);
  free_frames_.push_back(std::move(frame));
}

void Plan::bind_feeds(Frame& frame, const Feeds& feeds) const {
  for (const FedValue& fed : fed_values_)
    frame.values[fed.value] = feeds[fed.feed].second.reshaped(fed.shape);
}

}  // namespace kolo
