#include <kolo/collectives/graph/group_ops.h>

#include <kolo/collectives/graph/group_node.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/ops/shapes.h>

namespace kolo {
namespace {

using Strings = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

void check_count(const char* what, std::size_t count, std::size_t gradients) {
  if (count != gradients)
    throw InvalidArgumentError("group_allreduce: {} {} for {} gradients; give one for each", count, what,
                               gradients);
}

// Behind the whole gradients come the values and the indices of each list of slices: all ranks' rows, so
// that nobody knows how many.
void set_shapes_of_slices(ShapeContext& c, int first, ReduceOp op) {
  const auto names = c.attr<Strings>("slice_names");
  const auto rows = c.attr<Numbers>("slice_rows");
  if (rows.size() != names.size())
    throw InvalidArgumentError(
        "group_allreduce: {} numbers of rows for {} lists of slices; give one for each", rows.size(),
        names.size());
  for (std::size_t g = 0; g < names.size(); ++g) {
    const int values = first + 2 * static_cast<int>(g), indices = values + 1;
    if (op != ReduceOp::sum && op != ReduceOp::average)
      throw InvalidArgumentError(
          "{} is not defined for slices (\"{}\"); make them whole, or use average or sum", name(op),
          names[g]);
    if (rows[g] < 0)
      throw InvalidArgumentError("group_allreduce: \"{}\", of which there are slices, has {} rows", names[g],
                                 rows[g]);
    if (c.dtype(indices) != DType::i32 && c.dtype(indices) != DType::i64)
      throw InvalidArgumentError("group_allreduce: the indices of \"{}\" are {}; they must be int32 or int64",
                                 names[g], numpy_name(c.dtype(indices)));
    for (const int i : {values, indices}) {
      if (!c.input(i).has_rank() || c.input(i).rank() < 1)
        throw InvalidArgumentError("group_allreduce: {} of \"{}\" are {}; they need at least one dimension",
                                   i == values ? "the values" : "the indices", names[g], c.input(i));
      c.set_output(i, c.input(i).with_dim(0, -1));
    }
  }
}

void check_sharding(ShapeContext& c, int slices, ReduceOp op) {
  const auto shard = c.attr<std::int64_t>("shard"), shards = c.attr<std::int64_t>("shards");
  if (shards == 0) return;
  if (shard < 0 || shard >= shards)
    throw InvalidArgumentError("group_allreduce: there is no shard {} of {}", shard, shards);
  if (const auto set = c.attr<std::int64_t>("process_set"); set != 0)
    throw InvalidArgumentError(
        "group_allreduce: sharded reductions are over all ranks, not over process set {}", set);
  if (slices > 0 || (op != ReduceOp::sum && op != ReduceOp::average))
    throw InvalidArgumentError(
        "group_allreduce: sharded reductions take whole gradients and sum or average; there are {} lists of "
        "slices, and op is {}",
        slices, name(op));
}

// All checks: a graph from a file may say anything.
void check_attrs(ShapeContext& c) {
  const auto slices = c.attr<Strings>("slice_names").size();
  if (2 * slices > static_cast<std::size_t>(c.num_inputs()))
    throw InvalidArgumentError("group_allreduce: {} lists of slices in {} inputs; each has two", slices,
                               c.num_inputs());
  const int gradients = c.num_inputs() - 2 * static_cast<int>(slices);
  check_count("names", c.attr<Strings>("names").size(), static_cast<std::size_t>(gradients));
  if (const auto groups = c.attr<Numbers>("groups"); !groups.empty())
    check_count("groups", groups.size(), static_cast<std::size_t>(gradients));
  bucket_limits("group_allreduce", c.attr<std::int64_t>("first_bucket_bytes"),
                c.attr<std::int64_t>("bucket_bytes"));
  const ReduceOp op = reduce_op_from_name(c.attr<std::string>("reduction"));
  detail::check_predivision(c.attr<double>("predivide_factor"), op);
  check_sharding(c, static_cast<int>(slices), op);
  for (int i = 0; i < gradients; ++i) c.set_output(i, c.input(i));
  for (int i = 0; i < c.num_inputs(); ++i)
    if (i < gradients || (i - gradients) % 2 == 0) check_reducible(op, c.dtype(i));
  set_shapes_of_slices(c, gradients, op);
}

OpSchema reduction(const char* op) {
  return OpSchema(op)
      .variadic("gradients", {}, /*mixed=*/true)
      .required_attr("reduction", "average")
      .required_attr("names", Strings())
      .attr("first_bucket_bytes", 0)
      .attr("bucket_bytes", 0)
      .attr("predivide_factor", 1.0)
      .attr("groups", Numbers())
      .attr("shard", 0)
      .attr("shards", 0)
      .attr("compared", Strings())
      .attr("compared_values", Strings())
      .attr("slice_names", Strings())
      .attr("slice_rows", Numbers())
      .attr("of_one_rank", Strings())
      .attr("last", Strings())
      .attr("process_set", 0)
      .output_per_input()
      .shape(check_attrs)
      .stateful()
      .reduces_over_ranks()
      .expanded_by_pass();
}

// Without a gradient function: differentiating through a reduction of gradients is refused rather than
// silently wrong.
const RegisterOp group_allreduce_op(reduction(detail::kGroupAllReduceOp));

const RegisterOp own_allreduce_op(
    reduction(detail::kAllReduceOp).gradient([](Scope& s, const Node& op, const Outputs& dy) {
      const ReduceOp reduced_by = reduce_op_from_name(op.attr<std::string>("reduction"));
      if (reduced_by != ReduceOp::sum && reduced_by != ReduceOp::average)
        throw InvalidArgumentError("allreduce by {} has no gradient", name(reduced_by));
      Outputs dx;
      for (const Output& d : dy) dx.push_back(d ? scheduled_allreduce(s, d, reduced_by) : Output());
      return dx;
    }));

void check_known(const GroupReduceInputs& inputs) {
  // Buckets and what the ranks compare follow from the graph alone.
  for (std::size_t i = 0; i < inputs.gradients.size() && i < inputs.names.size(); ++i)
    if (!inputs.gradients[i].shape().is_fully_known())
      throw InvalidArgumentError(
          "group_allreduce: the shape of {}, the gradient of \"{}\", is {}; it must be fully known",
          inputs.gradients[i].name(), inputs.names[i], inputs.gradients[i].shape());
  if (inputs.slices.size() != inputs.slice_names.size())
    throw InvalidArgumentError("group_reduce: {} names for {} lists of slices; give one for each",
                               inputs.slice_names.size(), inputs.slices.size());
  for (std::size_t i = 0; i < inputs.slices.size(); ++i)
    if (!inputs.slices[i].dense_shape.is_fully_known() || inputs.slices[i].dense_shape.rank() < 1)
      throw InvalidArgumentError(
          "group_reduce: the shape of \"{}\", of which there are slices, is {}; it must be fully known",
          inputs.slice_names[i], inputs.slices[i].dense_shape);
}

}  // namespace

GroupReduced group_reduce(const Scope& s, const GroupReduceInputs& inputs,
                          const GroupAllReduceOptions& options) {
  check_known(inputs);
  Outputs all = inputs.gradients;
  Numbers slice_rows;
  for (const IndexedSlices& slices : inputs.slices) {
    const Shape row = slices.dense_shape.with_dim(0, -1);
    const Shape& known = slices.values.shape();
    const bool is_known = known.has_rank() && known.rank() == row.rank() && known.with_dim(0, -1) == row;
    all.push_back(is_known ? slices.values : reshape(s, slices.values, row));
    all.push_back(slices.indices);
    slice_rows.push_back(slices.dense_shape.dim(0));
  }
  Strings compared, compared_values;
  for (const auto& [setting, value] : options.compared) {
    compared.push_back(setting);
    compared_values.push_back(value);
  }
  const Operation node = s.add(detail::kGroupAllReduceOp, all,
                               {{"reduction", name(options.op)},
                                {"names", inputs.names},
                                {"first_bucket_bytes", options.first_bucket_bytes},
                                {"bucket_bytes", options.bucket_bytes},
                                {"predivide_factor", options.predivide_factor},
                                {"groups", options.groups},
                                {"shard", options.sharded ? process().rank : 0},
                                {"shards", options.sharded ? process().size : 0},
                                {"compared", compared},
                                {"compared_values", compared_values},
                                {"slice_names", inputs.slice_names},
                                {"slice_rows", slice_rows},
                                {"of_one_rank", options.of_one_rank},
                                {"last", options.last},
                                {"process_set", options.process_set.id()}});
  GroupReduced reduced{.gradients = {}, .slices = inputs.slices};
  int next = 0;
  for (std::size_t i = 0; i < inputs.gradients.size(); ++i) reduced.gradients.push_back(node.output(next++));
  for (IndexedSlices& slices : reduced.slices) {
    slices.values = node.output(next++);
    slices.indices = node.output(next++);
  }
  return reduced;
}

Outputs group_allreduce(const Scope& s, const Outputs& gradients, const std::vector<std::string>& names,
                        const GroupAllReduceOptions& options) {
  return group_reduce(s, {.gradients = gradients, .names = names}, options).gradients;
}

Output scheduled_allreduce(const Scope& s, Output x, ReduceOp op) {
  if (!x.shape().is_fully_known())
    throw InvalidArgumentError("allreduce: the shape of {} is {}; it must be fully known", x.name(),
                               x.shape());
  return s.add(detail::kAllReduceOp, {x},
               {{"reduction", name(op)}, {"names", Strings{s.wished_name("allreduce")}}});
}

}  // namespace kolo
