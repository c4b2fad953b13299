#include <kolo/collectives/graph_ops.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

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
                                        .attr("schedule", "")
                                        .attr("of_one_rank", std::vector<std::string>())
                                        .output_per_input()
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

}  // namespace

Outputs group_allreduce(const Scope& s, const Outputs& gradients, const std::vector<std::string>& names,
                        const GroupAllReduceOptions& options) {
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
  const Operation node = s.add("GroupAllReduce", gradients,
                               {{"reduction", name(options.op)},
                                {"names", names},
                                {"first_bucket_bytes", options.first_bucket_bytes},
                                {"bucket_bytes", options.bucket_bytes},
                                {"predivide_factor", options.predivide_factor},
                                {"groups", options.groups},
                                {"compared", options.compared},
                                {"schedule", s.wished_name("GroupAllReduce")},
                                {"of_one_rank", options.of_one_rank}});
  Outputs reduced;
  for (int i = 0; i < node.node->num_outputs(); ++i) reduced.push_back(node.output(i));
  return reduced;
}

}  // namespace kolo
