// The schedule of each GroupAllReduce and AllReduce of a session: what the ranks agree on before the first
// step.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/engine/process_set_internal.h>
#include <kolo/collectives/graph/group_node.h>
#include <kolo/collectives/graph/sharding.h>
#include <kolo/collectives/graph/shared_factors.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/device/device_set.h>
#include <kolo/core/runtime/step_vote.h>

namespace kolo {
namespace {

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
  spec.limits = detail::limits_of_buckets(group);
  if (group.op() == detail::kGroupAllReduceOp) {
    spec.gpus = gpus_of(group, devices);
    // A GPU's factors are nothing that ranks read of each other.
    if (spec.gpus->empty()) spec.products = detail::products_of(group);
  }
  return std::make_shared<Schedule>(std::move(spec));
}

const RegisterVote group_vote(detail::kGroupAllReduceOp, make_schedule);
const RegisterVote single_vote(detail::kAllReduceOp, make_schedule);

}  // namespace
}  // namespace kolo
