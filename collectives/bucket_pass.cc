// Turns each GroupAllReduce and AllReduce of a step into one node for each bucket of its schedule, which
// starts as soon as the bucket's last gradient is written, and puts the gradients' memory inside the buckets,
// so that nothing is copied on the way.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kolo/collectives/engine/detail/process_set_access.h>
#include <kolo/collectives/graph_ops.h>
#include <kolo/collectives/schedule.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/passes/pass.h>
#include <kolo/core/runtime/step_agreement.h>

namespace kolo {
namespace {

// Outputs are the inputs' memory, which is the bucket's: the reduction is in place.
const RegisterOp bucket_op(OpSchema("BucketAllReduce")
                               .variadic("gradients")
                               .required_attr("bucket", 0)
                               .output_per_input()
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
  BucketKernel(std::shared_ptr<Schedule> schedule, int bucket)
      : schedule_(std::move(schedule)), bucket_(bucket) {}

  void start(KernelContext&, Completion done) override {
    done_ = done;
    schedule_->submit(bucket_, [this](std::exception_ptr error) { done_(std::move(error)); });
  }

 private:
  std::shared_ptr<Schedule> schedule_;
  int bucket_;
  Completion done_;  // kept here: a closure that held it would be allocated at each step
};

// The ranks may add rows up where they belong, instead of passing them on.
void check_rows(const Tensor& indices, std::int64_t rows) {
  for (std::int64_t i = 0; i < indices.elements(); ++i) {
    const std::int64_t index =
        indices.dtype() == DType::i32 ? indices.data<std::int32_t>()[i] : indices.data<std::int64_t>()[i];
    if (index < 0 || index >= rows)
      throw InvalidArgumentError("Index {} at offset {} in indices is out of range: there are {} rows", index,
                                 i, rows);
  }
}

class GatherRowsKernel final : public AsyncKernel {
 public:
  GatherRowsKernel(std::shared_ptr<Schedule> schedule, int gather, std::int64_t rows)
      : schedule_(std::move(schedule)), gather_(gather), rows_(rows) {}

  void start(KernelContext& context, Completion done) override {
    context_ = &context;
    done_ = done;
    check_rows(context.input(1), rows_);
    schedule_->give_rows(gather_, context.input(0), context.input(1));
    schedule_->submit(schedule_->slot_of_gather(gather_), [this](std::exception_ptr error) {
      if (!error) {
        auto [values, indices] = schedule_->gathered_rows(gather_);
        context_->set_output(0, std::move(values));
        context_->set_output(1, std::move(indices));
      }
      done_(std::move(error));
    });
  }

 private:
  std::shared_ptr<Schedule> schedule_;
  int gather_;
  std::int64_t rows_;
  KernelContext* context_ = nullptr;
  Completion done_;
};

const RegisterKernel gather_rows_kernel("GatherRows", "CPU", {}, KernelFactory([](KernelInit& init) {
                                          return std::make_unique<GatherRowsKernel>(
                                              init.resource<Schedule>(), init.attr<int>("gather"),
                                              init.attr<std::int64_t>("rows"));
                                        }));

const RegisterKernel bucket_kernel("BucketAllReduce", "CPU", {}, KernelFactory([](KernelInit& init) {
                                     return std::make_unique<BucketKernel>(init.resource<Schedule>(),
                                                                           init.attr<int>("bucket"));
                                   }));

int num_slices(const Node& group) {
  return static_cast<int>(group.attr<std::vector<std::string>>("slice_names").size());
}
// Of the inputs, those before the slices.
int num_gradients(const Node& group) { return group.num_inputs() - 2 * num_slices(group); }

// The group of each gradient, −1 where it has none.
std::vector<std::int64_t> groups_of(const Node& group) {
  auto groups = group.attr<std::vector<std::int64_t>>("groups");
  groups.resize(static_cast<std::size_t>(num_gradients(group)), -1);
  return groups;
}

// Of each gradient: −1, or where it stands among those that come last.
std::vector<std::ptrdiff_t> places_at_the_end(const Node& group) {
  const auto last = group.attr<std::vector<std::string>>("last");
  std::vector<std::ptrdiff_t> places;
  for (const std::string& name : group.attr<std::vector<std::string>>("names")) {
    const auto found = std::find(last.begin(), last.end(), name);
    places.push_back(found == last.end() ? -1 : found - last.begin());
  }
  return places;
}

// A group stands together, where its last member is made.
std::vector<int> with_groups_together(const std::vector<int>& order,
                                      const std::vector<std::int64_t>& groups) {
  std::vector<int> together;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::int64_t group = groups[order[k]];
    const auto is_member = [&](int input) { return groups[input] == group; };
    if (group < 0) together.push_back(order[k]);
    else if (std::none_of(order.begin() + static_cast<std::ptrdiff_t>(k) + 1, order.end(), is_member))
      std::copy_if(order.begin(), order.end(), std::back_inserter(together), is_member);
  }
  return together;
}

// Inputs of a GroupAllReduce in the order in which the backward pass makes them: the order of their nodes'
// creation, but for those that come last.
std::vector<int> backward_order(const Node& group) {
  std::vector<int> order(num_gradients(group));
  std::iota(order.begin(), order.end(), 0);
  const std::vector<std::ptrdiff_t> places = places_at_the_end(group);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const Output x = group.input(a), y = group.input(b);
    return std::tuple(places[a], x.node->id(), x.index) < std::tuple(places[b], y.node->id(), y.index);
  });
  return with_groups_together(order, groups_of(group));
}

Reduction reduction_of(const Node& group, int ranks) {
  const ReduceOp op = reduce_op_from_name(group.attr<std::string>("reduction"));
  const double factor = group.attr<double>("predivide_factor");
  if (factor == 1) return op;
  return {ReduceOp::sum, 1 / factor, factor / ranks};
}

std::pair<std::string, std::string> setting(const std::string& text) {
  const auto at = text.find('=');
  return {text.substr(0, at), at == std::string::npos ? "" : text.substr(at + 1)};
}

std::shared_ptr<StepAgreement> make_schedule(const Node& group) {
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
  const auto names = group.attr<std::vector<std::string>>("names");
  const auto groups = groups_of(group);
  for (const int i : backward_order(group))
    spec.gradients.push_back({.name = names.at(i),
                              .shape = group.output_shape(i),
                              .dtype = group.output_dtype(i),
                              .group = static_cast<int>(groups[i])});
  if (!group.attr<std::vector<std::int64_t>>("groups").empty()) {
    std::vector<int> in_order;
    for (const auto& gradient : spec.gradients) in_order.push_back(gradient.group);
    spec.options.emplace_back("the grouping of gradients", fmt::format("[{}]", fmt::join(in_order, ",")));
  }
  const auto slice_names = group.attr<std::vector<std::string>>("slice_names");
  const auto slice_rows = group.attr<std::vector<std::int64_t>>("slice_rows");
  for (int i = 0; i < num_slices(group); ++i) {
    const Output values = group.input(num_gradients(group) + 2 * i),
                 indices = group.input(num_gradients(group) + 2 * i + 1);
    spec.gathers.push_back({.name = slice_names.at(i),
                            .dense_shape = values.shape().with_dim(0, slice_rows.at(i)),
                            .dtype = values.dtype(),
                            .index_dtype = indices.dtype()});
  }
  for (const auto& text : group.attr<std::vector<std::string>>("compared"))
    spec.options.push_back(setting(text));
  spec.limits = default_bucket_limits();
  const auto first_bytes = group.attr<std::int64_t>("first_bucket_bytes"),
             bytes = group.attr<std::int64_t>("bucket_bytes");
  if (first_bytes > 0) spec.limits.first_bytes = first_bytes;
  if (bytes > 0) spec.limits.bytes = bytes;
  return std::make_shared<Schedule>(std::move(spec));
}

const RegisterAgreement group_agreement("GroupAllReduce", make_schedule);
const RegisterAgreement single_agreement("AllReduce", make_schedule);

bool is_reduction(const StepNode& node) {
  const std::string& op = node.schema->name();
  return node.origin != nullptr && (op == "GroupAllReduce" || op == "AllReduce");
}

// True if the producer may write `value` straight into a bucket: it is memory of its own that nobody else
// looks at. A reader beside the reduction would see the reduced gradient in the place of this rank's own.
bool can_lie_in_bucket(const StepGraph& graph, StepValue value) {
  const StepNode& producer = graph.nodes[value.node];
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

void split_into_buckets(StepGraph& graph, int group, const std::vector<int>& before,
                        const std::shared_ptr<Schedule>& schedule) {
  const std::vector<int> order = backward_order(*graph.nodes[group].origin);
  for (std::size_t b = 0; b < schedule->buckets().size(); ++b) {
    const Bucket& bucket = schedule->buckets()[b];
    const auto& memory = schedule->memory(static_cast<int>(b));
    std::vector<StepValue> inputs;
    std::int64_t last_written = 0;
    for (std::size_t k = 0; k < bucket.gradients.size(); ++k) {
      StepValue& slot = graph.nodes[group].inputs[order[bucket.gradients[k]]];
      StepValue gradient = slot;
      if (!can_lie_in_bucket(graph, gradient)) {
        const StepNode& producer = graph.nodes[gradient.node];
        gradient = {graph.add(kCopyOp, producer.name + "/into_bucket", {gradient}, {}, producer.order + 1),
                    0};
        graph.nodes[group].inputs[order[bucket.gradients[k]]] = gradient;
      }
      graph.placements[gradient] = {memory, static_cast<std::size_t>(bucket.offsets[k])};
      last_written = std::max(last_written, graph.nodes[gradient.node].order);
      inputs.push_back(gradient);
    }
    const int node = graph.add("BucketAllReduce", fmt::format("{}/bucket_{}", graph.nodes[group].name, b),
                               inputs, {{"bucket", static_cast<std::int64_t>(b)}}, last_written + 2);
    graph.nodes[node].resource = schedule;
    graph.nodes[node].control_inputs = before;
    for (std::size_t k = 0; k < bucket.gradients.size(); ++k) {
      const StepValue reduced{node, static_cast<int>(k)};
      graph.placements[reduced] = {memory, static_cast<std::size_t>(bucket.offsets[k])};
      graph.replace_uses({group, order[bucket.gradients[k]]}, reduced);
    }
    graph.nodes[group].control_inputs.push_back(node);
  }
}

void gather_slices(StepGraph& graph, int group, const std::vector<int>& before,
                   const std::shared_ptr<Schedule>& schedule) {
  const int first = num_gradients(*graph.nodes[group].origin);
  const auto rows = graph.nodes[group].origin->attr<std::vector<std::int64_t>>("slice_rows");
  for (int g = 0; g < schedule->num_gathers(); ++g) {
    const StepValue values = graph.nodes[group].inputs[first + 2 * g],
                    indices = graph.nodes[group].inputs[first + 2 * g + 1];
    const auto order = std::max(graph.nodes[values.node].order, graph.nodes[indices.node].order) + 2;
    const int node =
        graph.add("GatherRows", fmt::format("{}/rows_{}", graph.nodes[group].name, g), {values, indices},
                  {{"gather", static_cast<std::int64_t>(g)}, {"rows", rows.at(g)}}, order);
    graph.nodes[node].resource = schedule;
    graph.nodes[node].control_inputs = before;
    graph.replace_uses({group, first + 2 * g}, {node, 0});
    graph.replace_uses({group, first + 2 * g + 1}, {node, 1});
    graph.nodes[group].control_inputs.push_back(node);
  }
}

void bucket_gradients(StepGraph& graph, PassContext& context) {
  const int count = static_cast<int>(graph.nodes.size());  // nodes that are added here are no groups
  for (int i = 0; i < count; ++i) {
    if (!is_reduction(graph.nodes[i])) continue;
    const auto schedule = std::dynamic_pointer_cast<Schedule>(context.agreement(*graph.nodes[i].origin));
    if (schedule == nullptr) {
      // Nobody to reduce with: whoever reads the result reads the gradient itself, bit for bit.
      const auto inputs = graph.nodes[i].inputs;
      for (std::size_t k = 0; k < inputs.size(); ++k) graph.replace_uses({i, static_cast<int>(k)}, inputs[k]);
    } else {
      const std::vector<int> before = graph.nodes[i].control_inputs;
      split_into_buckets(graph, i, before, schedule);
      gather_slices(graph, i, before, schedule);
    }
    graph.retire(i);
  }
}

const RegisterPass bucket_pass("bucket", bucket_gradients);

}  // namespace
}  // namespace kolo
