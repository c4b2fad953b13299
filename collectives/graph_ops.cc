#include <kolo/collectives/graph_ops.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/reshape.h>

namespace kolo {
namespace {

// Behind the whole gradients come the values and the indices of each list of slices: all ranks' rows, so
// that nobody knows how many.
void set_shapes(ShapeContext& c) {
  const int slices = static_cast<int>(c.attr<std::vector<std::string>>("slice_names").size());
  const int first = c.num_inputs() - 2 * slices;
  for (int i = 0; i < c.num_inputs(); ++i)
    c.set_output(i, i < first ? c.input(i) : c.input(i).with_dim(0, -1));
}

// Without a gradient function: differentiating through a reduction is refused rather than silently wrong.
const RegisterOp group_allreduce_op(OpSchema("GroupAllReduce")
                                        .variadic("gradients", {}, /*mixed=*/true)
                                        .required_attr("reduction", "average")
                                        .required_attr("names", std::vector<std::string>())
                                        .attr("first_bucket_bytes", 0)
                                        .attr("bucket_bytes", 0)
                                        .attr("predivide_factor", 1.0)
                                        .attr("groups", std::vector<std::int64_t>())
                                        .attr("compared", std::vector<std::string>())
                                        .attr("slice_names", std::vector<std::string>())
                                        .attr("slice_rows", std::vector<std::int64_t>())
                                        .attr("schedule", "")
                                        .attr("of_one_rank", std::vector<std::string>())
                                        .output_per_input()
                                        .shape(set_shapes)
                                        .stateful()
                                        .expanded_by_pass());

// Beyond these limits the flags that travel with a bucket of f16 would vanish.
constexpr double kLargestPredivision = 1 << 16;

void check_predivision(const GroupAllReduceOptions& options) {
  const double factor = options.predivide_factor;
  if (factor == 1) return;
  if (options.op != ReduceOp::average)
    throw InvalidArgumentError(
        "gradient_predivide_factor is {}, but op is {}; it splits the division of an average", factor,
        name(options.op));
  if (!(factor >= 1 / kLargestPredivision && factor <= kLargestPredivision))
    throw InvalidArgumentError("gradient_predivide_factor is {}; it must be between 1/{} and {}", factor,
                               kLargestPredivision, kLargestPredivision);
}

void check_slices(const GroupReduceInputs& inputs, ReduceOp op) {
  if (inputs.slices.size() != inputs.slice_names.size())
    throw InvalidArgumentError("group_reduce: {} names for {} lists of slices; give one for each",
                               inputs.slice_names.size(), inputs.slices.size());
  if (!inputs.slices.empty() && op != ReduceOp::sum && op != ReduceOp::average)
    throw InvalidArgumentError(
        "{} is not defined for slices (\"{}\"); make them whole, or use average or sum", name(op),
        inputs.slice_names[0]);
  for (std::size_t i = 0; i < inputs.slices.size(); ++i)
    if (!inputs.slices[i].dense_shape.is_fully_known())
      throw InvalidArgumentError(
          "group_reduce: the shape of \"{}\", of which there are slices, is {}; it must be "
          "fully known",
          inputs.slice_names[i], inputs.slices[i].dense_shape);
}

}  // namespace

GroupReduced group_reduce(const Scope& s, const GroupReduceInputs& inputs,
                          const GroupAllReduceOptions& options) {
  const Outputs& gradients = inputs.gradients;
  const std::vector<std::string>& names = inputs.names;
  if (names.size() != gradients.size())
    throw InvalidArgumentError("group_allreduce: {} names for {} gradients; give one for each", names.size(),
                               gradients.size());
  if (options.first_bucket_bytes < 0 || options.bucket_bytes < 0)
    throw InvalidArgumentError(
        "group_allreduce: the limits of buckets are {} and {} bytes; they must not be negative",
        options.first_bucket_bytes, options.bucket_bytes);
  check_predivision(options);
  if (!options.groups.empty() && options.groups.size() != gradients.size())
    throw InvalidArgumentError("group_allreduce: {} groups for {} gradients; give one for each, or none",
                               options.groups.size(), gradients.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    check_reducible(options.op, gradients[i].dtype());
    // Buckets and what the ranks compare follow from the graph alone.
    if (!gradients[i].shape().is_fully_known())
      throw InvalidArgumentError(
          "group_allreduce: the shape of {}, the gradient of \"{}\", is {}; it must be fully known",
          gradients[i].name(), names[i], gradients[i].shape());
  }
  check_slices(inputs, options.op);
  Outputs all = gradients;
  std::vector<std::int64_t> slice_rows;
  for (const IndexedSlices& slices : inputs.slices) {
    const Shape row = slices.dense_shape.with_dim(0, -1);
    const Shape& known = slices.values.shape();
    const bool is_known = known.has_rank() && known.with_dim(0, -1) == row;
    all.push_back(is_known ? slices.values : reshape(s, slices.values, row));
    all.push_back(slices.indices);
    slice_rows.push_back(slices.dense_shape.dim(0));
  }
  const Operation node = s.add("GroupAllReduce", all,
                               {{"reduction", name(options.op)},
                                {"names", names},
                                {"first_bucket_bytes", options.first_bucket_bytes},
                                {"bucket_bytes", options.bucket_bytes},
                                {"predivide_factor", options.predivide_factor},
                                {"groups", options.groups},
                                {"compared", options.compared},
                                {"slice_names", inputs.slice_names},
                                {"slice_rows", slice_rows},
                                {"schedule", s.wished_name("GroupAllReduce")},
                                {"of_one_rank", options.of_one_rank}});
  GroupReduced reduced{.gradients = {}, .slices = inputs.slices};
  int next = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) reduced.gradients.push_back(node.output(next++));
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

}  // namespace kolo
