// Turns each GroupAllReduce and AllReduce of a step into one node for each bucket of its schedule, which
// starts as soon as the bucket's last gradient is written, and puts the gradients' memory inside the buckets,
// so that nothing is copied on the way.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/engine/process_set_internal.h>
#include <kolo/collectives/graph/group_node.h>
#include <kolo/collectives/graph/group_ops.h>
#include <kolo/collectives/graph/sharding.h>
#include <kolo/collectives/graph/shared_factors.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/device/device_set.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/row_numbers.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/transfer.h>
#include <kolo/core/runtime/step_vote.h>

namespace kolo {
namespace {

// Outputs are the inputs' memory, which is the bucket's: the reduction is in place.
const RegisterOp bucket_op(OpSchema("BucketAllReduce")
                               .variadic("gradients")
                               .required_attr("bucket", 0)
                               .output_per_input()
                               .stateful()
                               .made_by_pass());

// Outputs are this rank's parts, where they lie in the bucket.
const RegisterOp bucket_scatter_op(OpSchema("BucketReduceScatter")
                                       .variadic("gradients")
                                       .required_attr("bucket", 0)
                                       .required_attr("counts", std::vector<std::int64_t>())
                                       .output_per_input()
                                       .shape([](ShapeContext& c) {
                                         const auto counts = c.attr<std::vector<std::int64_t>>("counts");
                                         for (int i = 0; i < c.num_inputs(); ++i)
                                           c.set_output(i, {counts.at(static_cast<std::size_t>(i))});
                                       })
                                       .stateful()
                                       .made_by_pass());

const RegisterOp rows_op(OpSchema("GatherRows")
                             .input("values")
                             .input("indices", {DType::i32, DType::i64})
                             .required_attr("gather", 0)
                             .required_attr("rows", 0)
                             .output("all_values")
                             .output("all_indices", "indices")
                             .shape([](ShapeContext& c) {
                               for (int i = 0; i < 2; ++i) c.set_output(i, c.input(i).with_dim(0, -1));
                             })
                             .stateful()
                             .made_by_pass());

class BucketKernel final : public AsyncKernel {
 public:
  BucketKernel(std::shared_ptr<BucketSlot> bucket, bool to_read)
      : bucket_(std::move(bucket)), to_read_(to_read) {}

  void start(KernelContext&, Completion done) override {
    done_ = done;
    const auto over = [this](std::exception_ptr error) { done_(std::move(error)); };
    if (to_read_) bucket_->submit_to_read(over);
    else bucket_->submit(over);
  }

 private:
  std::shared_ptr<BucketSlot> bucket_;
  bool to_read_;
  Completion done_;  // kept here: a closure that held it would be allocated at each step
};

class GatherRowsKernel final : public AsyncKernel {
 public:
  GatherRowsKernel(std::shared_ptr<RowsSlot> slot, std::int64_t rows) : slot_(std::move(slot)), rows_(rows) {}

  void start(KernelContext& context, Completion done) override {
    context_ = &context;
    done_ = done;
    // The ranks may add rows up where they belong, instead of passing them on.
    detail::with_row_numbers(context.input(1), rows_, [](const auto*) {});
    slot_->submit(context.input(0), context.input(1), [this](std::exception_ptr error) {
      if (!error) {
        context_->set_output(0, slot_->values());
        context_->set_output(1, slot_->indices());
      }
      done_(std::move(error));
    });
  }

 private:
  std::shared_ptr<RowsSlot> slot_;
  std::int64_t rows_;
  KernelContext* context_ = nullptr;
  Completion done_;
};

const RegisterKernel gather_rows_kernel("GatherRows", "CPU", {}, KernelFactory([](KernelInit& init) {
                                          const auto schedule = init.resource<Schedule>();
                                          RowsSlot& slot = schedule->rows()[init.attr<std::size_t>("gather")];
                                          return std::make_unique<GatherRowsKernel>(
                                              std::shared_ptr<RowsSlot>(schedule, &slot),
                                              init.attr<std::int64_t>("rows"));
                                        }));

const KernelFactory kMakeBucketKernel = [](KernelInit& init) {
  const auto schedule = init.resource<Schedule>();
  BucketSlot& bucket = schedule->buckets()[init.attr<std::size_t>("bucket")];
  return std::make_unique<BucketKernel>(std::shared_ptr<BucketSlot>(schedule, &bucket),
                                        init.is_marked("to_read"));
};
const RegisterKernel bucket_kernel("BucketAllReduce", "CPU", {}, kMakeBucketKernel);
const RegisterKernel gpu_bucket_kernel("BucketAllReduce", "GPU", {}, kMakeBucketKernel);
const RegisterKernel bucket_scatter_kernel("BucketReduceScatter", "CPU", {}, kMakeBucketKernel);

Reduction reduction_of(const Node& group, int ranks) {
  const ReduceOp op = reduce_op_from_name(group.attr<std::string>("reduction"));
  const double factor = group.attr<double>("predivide_factor");
  return factor == 1 ? Reduction(op) : predivided_average(factor, ranks);
}

// Of the session, unless a gradient is asked to be computed elsewhere.
std::vector<Device*> gpus_of(const Node& group, const DeviceSet& devices) {
  for (int i = 0; i < detail::num_gradients(group); ++i) {
    const auto asked = parse_device_spec(group.input(i).node->requested_device());
    if (asked && asked->type && *asked->type != "GPU") return {};
  }
  std::vector<Device*> gpus;
  for (const auto& device : devices.devices())
    if (device->type() == "GPU") gpus.push_back(device.get());
  return gpus;
}

std::shared_ptr<StepVote> make_schedule(const Node& group, const DeviceSet& devices) {
  const auto set = detail::ProcessSetAccess::of_id(group.attr<int>("process_set"));
  const bool of_all = set == ProcessSet();
  const int size = of_all ? process().size : set.size();
  if (size == 1 || !(of_all || set.contains_this_rank())) return nullptr;
  if (const auto local = group.attr<std::vector<std::string>>("of_one_rank"); !local.empty())
    throw FailedPreconditionError(
        "{} was built for one rank, before init(): the gradient of \"{}\" would not be reduced over the {} "
        "ranks",
        describe(group), local[0], size);
  ScheduleSpec spec;
  spec.name = group.name();
  spec.process_set = set;
  spec.reduction = reduction_of(group, size);
  spec.gradients = detail::gradient_specs(group);
  if (detail::is_sharded(group)) {
    detail::check_built_for_this_rank(group);
    spec.shards = detail::shard_specs(group);
  }
  if (!group.attr<std::vector<std::int64_t>>("groups").empty()) {
    std::vector<int> in_order;
    for (const auto& gradient : spec.gradients) in_order.push_back(gradient.group);
    spec.options.emplace_back("the grouping of gradients", fmt::format("[{}]", fmt::join(in_order, ",")));
  }
  const auto slice_names = group.attr<std::vector<std::string>>("slice_names");
  const auto slice_rows = group.attr<std::vector<std::int64_t>>("slice_rows");
  for (int i = 0; i < detail::num_slices(group); ++i) {
    const Output values = group.input(detail::num_gradients(group) + 2 * i),
                 indices = group.input(detail::num_gradients(group) + 2 * i + 1);
    spec.gathers.push_back({.name = slice_names.at(i),
                            .dense_shape = values.shape().with_dim(0, slice_rows.at(i)),
                            .dtype = values.dtype(),
                            .index_dtype = indices.dtype()});
  }
  const auto compared = group.attr<std::vector<std::string>>("compared"),
             values = group.attr<std::vector<std::string>>("compared_values");
  if (compared.size() != values.size())
    throw InvalidArgumentError(
        "{} names {} settings to compare and {} values; a graph that an older kolo exported has no values: "
        "build it again",
        describe(group), compared.size(), values.size());
  for (std::size_t i = 0; i < compared.size(); ++i) spec.options.emplace_back(compared[i], values[i]);
  spec.limits = detail::bucket_limits(group);
  if (group.op() == "GroupAllReduce") {
    spec.gpus = gpus_of(group, devices);
    // A GPU's factors are nothing that ranks read of each other.
    if (spec.gpus->empty()) spec.products = detail::products_of(group);
  }
  return std::make_shared<Schedule>(std::move(spec));
}

const RegisterVote group_vote("GroupAllReduce", make_schedule);
const RegisterVote single_vote("AllReduce", make_schedule);

bool is_reduction(const StepNode& node) {
  const std::string& op = node.schema->name();
  return node.origin != nullptr && (op == "GroupAllReduce" || op == "AllReduce");
}

// True if the producer may write `value` straight into a bucket, in the memory of `gpu` or, for nullptr, of
// the host: it is memory of its own that nobody else looks at. A reader beside the reduction would see the
// reduced gradient in the place of this rank's own.
bool can_lie_in_bucket(const StepGraph& graph, StepValue value, const DeviceSet& devices, const Device* gpu) {
  const StepNode& producer = graph.nodes[value.node];
  const Device& device = devices.find(producer.device);
  if (gpu != nullptr ? &device != gpu : !device.has_host_memory()) return false;
  const std::string& op = producer.schema->name();
  if (graph.memory_root(value) != value || graph.placements.count(value) > 0) return false;
  if (producer.schema->is_variable_storage() || op == kFeedOp || op == "Const") return false;
  int uses = static_cast<int>(std::count(graph.fetches.begin(), graph.fetches.end(), value));
  for (const StepNode& node : graph.nodes) {
    uses += static_cast<int>(std::count(node.inputs.begin(), node.inputs.end(), value));
    for (const StepValue in : node.inputs) uses += in != value && graph.memory_root(in) == value;
  }
  return uses == 1;
}

// A group of gradients whose step becomes nodes for the slots of its schedule.
struct GroupInStep {
  StepGraph& graph;
  const int node;
  const std::shared_ptr<Schedule> schedule;
  const std::vector<int> order = detail::backward_order(*graph.nodes[node].origin);
  const std::vector<int> before = graph.nodes[node].control_inputs;

  int input_of(int gradient) const { return order[static_cast<std::size_t>(gradient)]; }
};

int add_bucket_node(const GroupInStep& group, const char* op, std::size_t bucket,
                    const std::vector<StepValue>& inputs, AttrMap attrs, std::int64_t order) {
  StepGraph& graph = group.graph;
  attrs.insert_or_assign("bucket", static_cast<std::int64_t>(bucket));
  const int node = graph.add(op, fmt::format("{}/bucket_{}", graph.nodes[group.node].name, bucket), inputs,
                             std::move(attrs), order);
  graph.nodes[node].resource = group.schedule;
  graph.nodes[node].control_inputs = group.before;
  if (const Device* gpu = group.schedule->device()) graph.nodes[node].device = gpu->name();
  graph.nodes[group.node].control_inputs.push_back(node);
  return node;
}

Placement place_in_bucket(const GroupInStep& group, std::size_t bucket, std::int64_t offset) {
  return {group.schedule->buckets()[bucket].memory(), static_cast<std::size_t>(offset),
          group.schedule->device() == nullptr};
}

void reduce_bucket(const GroupInStep& group, std::size_t b, const std::vector<StepValue>& inputs,
                   std::int64_t written) {
  const Bucket& bucket = group.schedule->buckets()[b].contents();
  const int node = add_bucket_node(group, "BucketAllReduce", b, inputs, {}, written);
  for (std::size_t k = 0; k < bucket.gradients.size(); ++k) {
    const StepValue reduced{node, static_cast<int>(k)};
    group.graph.placements[reduced] = place_in_bucket(group, b, bucket.offsets[k]);
    group.graph.replace_uses({group.node, group.input_of(bucket.gradients[k])}, reduced);
  }
}

// Readers of `part` of the gradient read `own`, the only reduced elements that there are.
void replace_own_shards(StepGraph& graph, StepValue gradient, const OwnedPart& part, StepValue own,
                        const std::string& name) {
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const StepNode& node = graph.nodes[i];
    if (node.schema->name() != "OwnShard" || node.inputs[0] != gradient) continue;
    const OwnedPart asked{node.attrs.at("first").get<std::int64_t>(),
                          node.attrs.at("count").get<std::int64_t>()};
    if (asked != part)
      throw InvalidArgumentError(
          "{} takes {} elements from element {} on of the gradient of \"{}\"; this rank's part is {} from {} "
          "on",
          node.name, asked.count, asked.first, name, part.count, part.first);
    graph.replace_uses({i, 0}, own);
    graph.retire(i);
  }
  const auto is_it = [&](StepValue value) { return value == gradient; };
  bool used = std::any_of(graph.fetches.begin(), graph.fetches.end(), is_it);
  for (const StepNode& node : graph.nodes)
    used = used || std::any_of(node.inputs.begin(), node.inputs.end(), is_it);
  if (used)
    throw InvalidArgumentError(
        "the reduced gradient of \"{}\" was asked for, but each rank has a part of it alone: the optimizer "
        "is "
        "sharded. Fetch what an op computes from it (its norm, a summary); where the graph has such an op "
        "before the session's first step, the ranks keep the gradient whole",
        name);
}

void scatter_bucket(const GroupInStep& group, std::size_t b, const std::vector<StepValue>& inputs,
                    std::int64_t written) {
  StepGraph& graph = group.graph;
  const Bucket& bucket = group.schedule->buckets()[b].contents();
  const Node& origin = *graph.nodes[group.node].origin;
  const auto names = origin.attr<std::vector<std::string>>("names");
  const auto parts = owned_parts(bucket, detail::gradient_specs(origin), process().rank, process().size);
  std::vector<std::int64_t> counts;
  for (const OwnedPart& part : parts) counts.push_back(part.count);
  const int node = add_bucket_node(group, "BucketReduceScatter", b, inputs, {{"counts", counts}}, written);
  for (std::size_t k = 0; k < bucket.gradients.size(); ++k) {
    const StepValue own{node, static_cast<int>(k)};
    const int input = group.input_of(bucket.gradients[k]);
    const auto first = static_cast<std::int64_t>(size_of(bucket.dtype)) * parts[k].first;
    graph.placements[own] = place_in_bucket(group, b, bucket.offsets[k] + first);
    replace_own_shards(graph, {group.node, input}, parts[k], own, names.at(input));
  }
}

void split_into_buckets(const GroupInStep& group, const DeviceSet& devices) {
  StepGraph& graph = group.graph;
  const Device* const gpu = group.schedule->device();
  const std::string home = gpu != nullptr ? gpu->name() : host_of(graph, devices);
  for (std::size_t b = 0; b < group.schedule->buckets().size(); ++b) {
    const BucketSlot& slot = group.schedule->buckets()[b];
    const Bucket& bucket = slot.contents();
    std::vector<StepValue> inputs;
    std::int64_t last_written = 0;
    for (std::size_t k = 0; k < bucket.gradients.size(); ++k) {
      const int input = group.input_of(bucket.gradients[k]);
      StepValue gradient = graph.nodes[group.node].inputs[input];
      if (!can_lie_in_bucket(graph, gradient, devices, gpu)) {
        const StepNode& producer = graph.nodes[gradient.node];
        gradient = {graph.add(kCopyOp, producer.name + "/into_bucket", {gradient}, {}, producer.order + 1),
                    0};
        graph.nodes[gradient.node].device = home;
        graph.nodes[group.node].inputs[input] = gradient;
      }
      graph.placements[gradient] = place_in_bucket(group, b, bucket.offsets[k]);
      last_written = std::max(last_written, graph.nodes[gradient.node].order);
      inputs.push_back(gradient);
    }
    if (slot.scatters()) scatter_bucket(group, b, inputs, last_written + 2);
    else reduce_bucket(group, b, inputs, last_written + 2);
  }
}

void gather_slices(const GroupInStep& group, const DeviceSet& devices) {
  StepGraph& graph = group.graph;
  const int first = detail::num_gradients(*graph.nodes[group.node].origin);
  const auto rows = graph.nodes[group.node].origin->attr<std::vector<std::int64_t>>("slice_rows");
  for (int g = 0; g < static_cast<int>(group.schedule->rows().size()); ++g) {
    const StepValue values = graph.nodes[group.node].inputs[first + 2 * g],
                    indices = graph.nodes[group.node].inputs[first + 2 * g + 1];
    const auto order = std::max(graph.nodes[values.node].order, graph.nodes[indices.node].order) + 2;
    const int node =
        graph.add("GatherRows", fmt::format("{}/rows_{}", graph.nodes[group.node].name, g), {values, indices},
                  {{"gather", static_cast<std::int64_t>(g)}, {"rows", rows.at(g)}}, order);
    graph.nodes[node].resource = group.schedule;
    graph.nodes[node].control_inputs = group.before;
    graph.nodes[node].device = host_of(graph, devices);  // rows are looked at before they are sent
    graph.replace_uses({group.node, first + 2 * g}, {node, 0});
    graph.replace_uses({group.node, first + 2 * g + 1}, {node, 1});
    graph.nodes[group.node].control_inputs.push_back(node);
  }
}

void bucket_gradients(StepGraph& graph, PassContext& context) {
  const int count = static_cast<int>(graph.nodes.size());  // nodes that are added here are no groups
  for (int i = 0; i < count; ++i) {
    if (!is_reduction(graph.nodes[i])) continue;
    if (auto schedule = std::dynamic_pointer_cast<Schedule>(context.vote(*graph.nodes[i].origin))) {
      const GroupInStep group{graph, i, std::move(schedule)};
      split_into_buckets(group, context.devices());
      gather_slices(group, context.devices());
    } else {
      // Nobody to reduce with: whoever reads the result reads the gradient itself, bit for bit.
      const auto inputs = graph.nodes[i].inputs;
      for (std::size_t k = 0; k < inputs.size(); ++k) graph.replace_uses({i, static_cast<int>(k)}, inputs[k]);
    }
    graph.retire(i);
  }
}

const RegisterPass bucket_pass("bucket", bucket_gradients);

}  // namespace
}  // namespace kolo
