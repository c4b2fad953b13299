#include <kolo/collectives/graph/sharding.h>

#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <kolo/collectives/graph/group_node.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/graph/graph.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

using Numbers = std::vector<std::int64_t>;

void check_part(ShapeContext& c) {
  const auto first = c.attr<std::int64_t>("first"), count = c.attr<std::int64_t>("count");
  // A graph from a file may hold any numbers: their sum need not be one.
  const std::int64_t elements =
      c.input(0).is_fully_known() ? c.input(0).elements() : std::numeric_limits<std::int64_t>::max();
  if (first < 0 || count < 0 || first > elements || count > elements - first)
    throw InvalidArgumentError("{} elements from element {} on do not lie in a tensor of shape {}", count,
                               first, c.input(0));
  c.set_output(0, {count});
}

// Without a gradient function: nothing is differentiated through an update.
const RegisterOp own_shard_op(OpSchema(detail::kOwnShardOp)
                                  .input("x")
                                  .required_attr("first", 0)
                                  .required_attr("count", 0)
                                  .output("part")
                                  .shape(check_part));

// Its group is the one among its control inputs: it happens in steps in which that happens.
const RegisterOp gather_shards_op(OpSchema(detail::kGatherShardsOp)
                                      .variadic("parts", {}, /*mixed=*/true)
                                      .required_attr("gradients", Numbers())
                                      .required_attr("counts", Numbers())
                                      .output_per_input()
                                      .shape([](ShapeContext& c) {
                                        const auto counts = c.attr<Numbers>("counts");
                                        const auto inputs = static_cast<std::size_t>(c.num_inputs());
                                        if (counts.size() != inputs ||
                                            c.attr<Numbers>("gradients").size() != inputs)
                                          throw InvalidArgumentError(
                                              "gather_shards: {} parts, {} gradients, {} counts; give one "
                                              "for each",
                                              inputs, c.attr<Numbers>("gradients").size(), counts.size());
                                        for (std::size_t i = 0; i < inputs; ++i)
                                          c.set_output(static_cast<int>(i), {counts[i]});
                                      })
                                      .stateful()
                                      .expanded_by_pass());

class OwnShardKernel final : public Kernel {
 public:
  explicit OwnShardKernel(KernelInit& init) : first_(init.attr<std::int64_t>("first")) {}
  void compute(KernelContext& context) override {
    const Tensor &x = context.input(0), &part = context.output(0);
    const std::int64_t elements = part.elements();
    if (first_ > x.elements() - elements)
      throw InvalidArgumentError("{} elements from element {} on do not lie in a tensor of shape {}",
                                 elements, first_, x.shape());
    if (elements > 0)
      std::memcpy(part.raw(), x.raw() + first_ * static_cast<std::int64_t>(size_of(x.dtype())), part.bytes());
  }

 private:
  const std::int64_t first_;
};

const RegisterKernel own_shard_kernel(detail::kOwnShardOp, "CPU", {}, make_kernel<OwnShardKernel>);

bool is_sharded_group(const Node& node) {
  return node.op() == detail::kGroupAllReduceOp && detail::is_sharded(node);
}

// An op that makes of a part of its first input the same part of its output: element by element, with
// nothing but numbers beside it.
bool keeps_parts(const Node& node) {
  static const std::set<std::string> ops = {"Identity", "Cast", "CheckNumerics", "Div", "Mul"};
  if (ops.count(node.op()) == 0 || node.branch() != nullptr) return false;
  const Shape& shape = node.input(0).shape();
  return shape.is_fully_known() && shape == node.output_shape(0) &&
         (node.num_inputs() == 1 || node.input(1).shape() == Shape());
}

const Output& before_element_wise(const Output& x) {
  const Output* at = &x;
  while (at->index == 0 && keeps_parts(*at->node)) at = &at->node->input(0);
  return *at;
}

Output repeated(const Scope& s, const Output& x, const OwnedPart& part) {
  if (x.index != 0 || !keeps_parts(*x.node))
    return s.add(detail::kOwnShardOp, {x}, {{"first", part.first}, {"count", part.count}});
  Outputs inputs = x.node->inputs();
  inputs[0] = repeated(s, inputs[0], part);
  std::vector<Operation> before(x.node->control_inputs().begin(), x.node->control_inputs().end());
  return s.control_dependencies(before).add(x.node->op(), inputs, x.node->attrs());
}

// The buckets of a sharded group, and who owns what of them.
struct Shards {
  explicit Shards(const Node& group)
      : order(detail::backward_order(group)),
        specs(detail::gradient_specs(group)),
        buckets(make_buckets(specs, detail::limits_of_buckets(group))),
        ranks(static_cast<int>(group.attr<std::int64_t>("shards"))) {}
  std::vector<OwnedPart> parts(const Bucket& bucket, int rank) const {
    return owned_parts(bucket, specs, rank, ranks);
  }
  int input(const Bucket& bucket, std::size_t place) const { return order[bucket.gradients[place]]; }

  const std::vector<int> order;
  const std::vector<GradientSpec> specs;
  const std::vector<Bucket> buckets;
  const int ranks;
};

}  // namespace

std::optional<ShardedGradient> sharded_source(const Output& x) {
  const Output& source = before_element_wise(x);
  if (!is_sharded_group(*source.node)) return {};
  return ShardedGradient{source.node, source.index};
}

std::vector<OwnedPart> own_parts(const Node& group) {
  const Shards shards(group);
  const auto own = static_cast<int>(group.attr<std::int64_t>("shard"));
  std::vector<OwnedPart> all(shards.order.size());
  for (const Bucket& bucket : shards.buckets) {
    const auto parts = shards.parts(bucket, own);
    for (std::size_t k = 0; k < parts.size(); ++k) all[shards.input(bucket, k)] = parts[k];
  }
  return all;
}

std::vector<OwnedPart> parts_of_ranks(const Node& group, int gradient) {
  const Shards shards(group);
  std::vector<OwnedPart> found;
  for (const Bucket& bucket : shards.buckets)
    for (std::size_t k = 0; k < bucket.gradients.size(); ++k)
      if (shards.input(bucket, k) == gradient)
        for (int rank = 0; rank < shards.ranks; ++rank) found.push_back(shards.parts(bucket, rank)[k]);
  return found;
}

Output own_shard(const Scope& s, const Output& x, const OwnedPart& part) {
  if (sharded_source(x)) return repeated(s, x, part);
  return s.add(detail::kOwnShardOp, {x}, {{"first", part.first}, {"count", part.count}});
}

Outputs gather_shards(const Scope& s, const Node& group, const std::vector<UpdatedPart>& parts) {
  if (!is_sharded_group(group))
    throw InvalidArgumentError("gather_shards: {} is no sharded reduction", describe(group));
  Outputs inputs;
  Numbers gradients, counts;
  for (const UpdatedPart& updated : parts) {
    inputs.push_back(updated.part);
    gradients.push_back(updated.gradient);
    counts.push_back(group.output_shape(updated.gradient).elements());
  }
  const Operation node =
      s.control_dependencies({Operation(&group)})
          .add(detail::kGatherShardsOp, inputs, {{"gradients", gradients}, {"counts", counts}});
  Outputs whole;
  for (int i = 0; i < static_cast<int>(parts.size()); ++i) whole.push_back(node.output(i));
  return whole;
}

std::optional<std::pair<const Node*, std::vector<UpdatedPart>>> gathered_by(const Node& node) {
  if (node.op() != detail::kGatherShardsOp) return {};
  std::vector<UpdatedPart> parts;
  for (const std::int64_t gradient : node.attr<Numbers>("gradients"))
    parts.push_back({static_cast<int>(gradient), node.input(static_cast<int>(parts.size()))});
  return std::pair(&detail::group_of_gather(node), std::move(parts));
}

namespace detail {

bool is_sharded(const Node& group) {
  return group.op() == kGroupAllReduceOp && group.attr<std::int64_t>("shards") > 0;
}

void check_built_for_this_rank(const Node& group) {
  const auto shard = group.attr<std::int64_t>("shard"), shards = group.attr<std::int64_t>("shards");
  if (shards != process().size || shard != process().rank)
    throw FailedPreconditionError(
        "{} was built for rank {} of {}, whose part of the variables it updates; this is rank {} of {}",
        describe(group), shard, shards, process().rank, process().size);
}

const Node& group_of_gather(const Node& gather) {
  for (const Node* before : gather.control_inputs())
    if (is_sharded_group(*before)) return *before;
  throw InvalidArgumentError("{} waits for no sharded reduction", describe(gather));
}

std::vector<ShardSpec> shard_specs(const Node& group) {
  std::vector<ShardSpec> by_input(static_cast<std::size_t>(num_gradients(group)));
  const Graph& graph = group.graph();
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.op() == kOwnShardOp) continue;
    // Readers of what is still the same gradient are found by its way back.
    for (const Output& in : node.inputs()) {
      if (keeps_parts(node) && &in == &node.inputs()[0]) continue;
      const Output& source = before_element_wise(in);
      if (source.node == &group && source.index < static_cast<int>(by_input.size()))
        by_input[source.index].part_only = false;
    }
    // Who waits for the whole of it keeps it.
    for (const Node* before : node.control_inputs()) {
      if (!keeps_parts(*before)) continue;
      const Output& source = before_element_wise(before->input(0));
      if (source.node == &group && source.index < static_cast<int>(by_input.size()))
        by_input[source.index].part_only = false;
    }
    if (node.op() != kGatherShardsOp || &group_of_gather(node) != &group) continue;
    const auto gradients = node.attr<Numbers>("gradients");
    for (std::size_t i = 0; i < gradients.size(); ++i)
      by_input.at(static_cast<std::size_t>(gradients[i])).gathered = node.input(static_cast<int>(i)).dtype();
  }
  std::vector<ShardSpec> specs;
  for (const int i : backward_order(group)) specs.push_back(by_input[i]);
  return specs;
}

}  // namespace detail
}  // namespace kolo
