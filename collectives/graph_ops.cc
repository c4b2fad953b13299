#include <kolo/collectives/graph_ops.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

// As group_allreduce checks them; a graph from a file may say anything.
void check_attrs(ShapeContext& c) {
  const auto names = c.attr<std::vector<std::string>>("names").size();
  if (names != static_cast<std::size_t>(c.num_inputs()))
    throw InvalidArgumentError("group_allreduce: {} names for {} gradients; give one for each", names,
                               c.num_inputs());
  const auto first_bytes = c.attr<std::int64_t>("first_bucket_bytes"),
             bytes = c.attr<std::int64_t>("bucket_bytes");
  if (first_bytes < 0 || bytes < 0)
    throw InvalidArgumentError(
        "group_allreduce: the limits of buckets are {} and {} bytes; they must not be negative", first_bytes,
        bytes);
  const ReduceOp op = reduce_op_from_name(c.attr<std::string>("reduction"));
  for (int i = 0; i < c.num_inputs(); ++i) {
    check_reducible(op, c.dtype(i));
    c.set_output(i, c.input(i));
  }
}

// Without a gradient function: differentiating through a reduction is refused rather than silently wrong.
const RegisterOp group_allreduce_op(OpSchema("GroupAllReduce")
                                        .variadic("gradients", {}, /*mixed=*/true)
                                        .required_attr("reduction", "average")
                                        .required_attr("names", std::vector<std::string>())
                                        .attr("first_bucket_bytes", 0)
                                        .attr("bucket_bytes", 0)
                                        .attr("schedule", "")
                                        .attr("of_one_rank", std::vector<std::string>())
                                        .output_per_input()
                                        .shape(check_attrs)
                                        .stateful()
                                        .expanded_by_pass());

}  // namespace

Outputs group_allreduce(const Scope& s, const Outputs& gradients, const std::vector<std::string>& names,
                        const GroupAllReduceOptions& options) {
  for (std::size_t i = 0; i < gradients.size() && i < names.size(); ++i) {
    // Buckets and what the ranks compare follow from the graph alone.
    if (!gradients[i].shape().is_fully_known())
      throw InvalidArgumentError(
          "group_allreduce: the shape of {}, the gradient of \"{}\", is {}; it must be fully known",
          gradients[i].name(), names[i], gradients[i].shape());
  }
  const Operation node = s.add("GroupAllReduce", gradients,
                               {{"reduction", name(options.op)},
                                {"names", names},
                                {"first_bucket_bytes", options.first_bucket_bytes},
                                {"bucket_bytes", options.bucket_bytes},
                                {"schedule", s.wished_name("GroupAllReduce")},
                                {"of_one_rank", options.of_one_rank}});
  Outputs reduced;
  for (int i = 0; i < node.node->num_outputs(); ++i) reduced.push_back(node.output(i));
  return reduced;
}

}  // namespace kolo
