// Schemas of the nodes that hand a schedule's slots over. Kernels: bucket_kernels.cc.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <kolo/collectives/schedule/bucket_nodes.h>
#include <kolo/core/graph/op_schema.h>

namespace kolo {
namespace {

using Numbers = std::vector<std::int64_t>;

// As many elements as the attribute says, for each input.
void set_counts(ShapeContext& c) {
  const auto counts = c.attr<Numbers>("counts");
  for (int i = 0; i < c.num_inputs(); ++i) c.set_output(i, {counts.at(static_cast<std::size_t>(i))});
}

// Outputs are the inputs' memory, which is the bucket's: the reduction is in place.
const RegisterOp bucket_op(OpSchema(detail::kBucketAllReduceOp)
                               .variadic("gradients")
                               .required_attr(detail::kBucketAttr, 0)
                               .output_per_input()
                               .stateful()
                               .made_by_pass());

// Outputs are this rank's parts, where they lie in the bucket.
const RegisterOp bucket_scatter_op(OpSchema(detail::kBucketReduceScatterOp)
                                       .variadic("gradients")
                                       .required_attr(detail::kBucketAttr, 0)
                                       .required_attr("counts", Numbers())
                                       .output_per_input()
                                       .shape(set_counts)
                                       .stateful()
                                       .made_by_pass());

// Outputs are the whole variables, as they stand in the bucket's memory.
const RegisterOp gather_op(OpSchema(detail::kBucketAllGatherOp)
                               .variadic("parts")
                               .required_attr(detail::kBucketAttr, 0)
                               .required_attr("offsets", Numbers())
                               .required_attr("counts", Numbers())
                               .output_per_input()
                               .shape(set_counts)
                               .stateful()
                               .made_by_pass());

const RegisterOp rows_op(OpSchema(detail::kGatherRowsOp)
                             .input("values")
                             .input("indices", {DType::i32, DType::i64})
                             .required_attr(detail::kGatherAttr, 0)
                             .required_attr("rows", 0)
                             .output("all_values")
                             .output("all_indices", "indices")
                             .shape([](ShapeContext& c) {
                               for (int i = 0; i < 2; ++i) c.set_output(i, c.input(i).with_dim(0, -1));
                             })
                             .stateful()
                             .made_by_pass());

const RegisterOp writable_op(OpSchema(detail::kBucketsWritableOp).stateful().made_by_pass());

}  // namespace
}  // namespace kolo
