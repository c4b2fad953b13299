#include <kolo/core/graph/indexed_slices.h>

namespace kolo {
namespace {

constexpr char kToDense[] = "SlicesToDense";

}  // namespace

Output to_dense(const Scope& s, const IndexedSlices& slices) {
  Outputs inputs = {slices.values, slices.indices};
  if (slices.like) inputs.push_back(slices.like);
  return s.add(kToDense, inputs, {{"dense_shape", slices.dense_shape}});
}

std::optional<IndexedSlices> indexed_slices(const Output& gradient) {
  if (!gradient || gradient.node->op() != kToDense) return std::nullopt;
  const Node& node = *gradient.node;
  return IndexedSlices{.values = node.input(0),
                       .indices = node.input(1),
                       .dense_shape = node.output_shape(0),
                       .like = node.num_inputs() > 2 ? node.input(2) : Output()};
}

}  // namespace kolo
