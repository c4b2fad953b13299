// Turns each GroupAllReduce and AllReduce of a step into one node for each bucket of its schedule, which
// starts as soon as the bucket's last gradient is written, and puts the gradients' memory inside the buckets,
// so that nothing is copied on the way.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <kolo/collectives/graph/group_node.h>
#include <kolo/collectives/graph/sharding.h>
#include <kolo/collectives/schedule/bucket_nodes.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/device/device_set.h>
#include <kolo/core/passes/pipeline.h>
#include <kolo/core/passes/transfer.h>
#include <kolo/core/runtime/step_vote.h>

namespace kolo {
namespace {

bool is_reduction(const StepNode& node) {
  const std::string& op = node.schema->name();
  return node.origin != nullptr && (op == detail::kGroupAllReduceOp || op == detail::kAllReduceOp);
}

// True if the producer may write `value` straight into a bucket, in the memory of `gpu` or, for nullptr, of
// the host: it is memory of its own that nobody else looks at. A reader beside the reduction would see the
// reduced gradient in the place of this rank's own.
bool can_lie_in_bucket(const StepGraph& graph, StepValue value, const DeviceSet& devices, const Device* gpu) {
  const Device& device = devices.find(graph.nodes[value.node].device);
  if (gpu != nullptr ? &device != gpu : !device.has_host_memory()) return false;
  if (!graph.is_made_in_given_memory(value)) return false;
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
  attrs.insert_or_assign(detail::kBucketAttr, static_cast<std::int64_t>(bucket));
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
  const int node = add_bucket_node(group, detail::kBucketAllReduceOp, b, inputs, {}, written);
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
    if (node.schema->name() != detail::kOwnShardOp || node.inputs[0] != gradient) continue;
    const OwnedPart asked{node.attrs.at("first").get<std::int64_t>(),
                          node.attrs.at("count").get<std::int64_t>()};
    if (asked != part)
      throw InvalidArgumentError(
          "{} takes {} elements from element {} on of the gradient of \"{}\"; this rank's part is {} from {} "
          "on. Were the limits of buckets others when the graph was built?",
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

void scatter_bucket(const GroupInStep& group, const std::vector<GradientSpec>& specs, std::size_t b,
                    const std::vector<StepValue>& inputs, std::int64_t written) {
  StepGraph& graph = group.graph;
  const Bucket& bucket = group.schedule->buckets()[b].contents();
  const Node& origin = *graph.nodes[group.node].origin;
  const auto names = origin.attr<std::vector<std::string>>("names");
  const auto parts = owned_parts(bucket, specs, process().rank, process().size);
  std::vector<std::int64_t> counts;
  for (const OwnedPart& part : parts) counts.push_back(part.count);
  const int node =
      add_bucket_node(group, detail::kBucketReduceScatterOp, b, inputs, {{"counts", counts}}, written);
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
  const Node& origin = *graph.nodes[group.node].origin;
  const auto specs =
      detail::is_sharded(origin) ? detail::gradient_specs(origin) : std::vector<GradientSpec>();
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
    if (slot.scatters()) scatter_bucket(group, specs, b, inputs, last_written + 2);
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
    const int node = graph.add(
        detail::kGatherRowsOp, fmt::format("{}/rows_{}", graph.nodes[group.node].name, g), {values, indices},
        {{detail::kGatherAttr, static_cast<std::int64_t>(g)}, {"rows", rows.at(g)}}, order);
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
