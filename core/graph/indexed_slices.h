// The gradient of a tensor of which a step uses a few rows: those rows, instead of a tensor full of zeros.
#pragma once

#include <optional>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// Stands for a tensor of `dense_shape` whose row indices[i] is values[i]. A row that is listed several times
/// is the sum, one that is not listed is 0.
struct IndexedSlices {
  Output values;      // [n, …]: n rows, each as dense_shape says behind its first dimension
  Output indices;     // [n], i32 or i64
  Shape dense_shape;  // of the whole tensor
  Output like = {};   // a tensor of that shape; needed only where dense_shape is not fully known
};

/// The slices as a gradient, to be used wherever one is asked for: who understands slices (optimizers,
/// clipping, `gradients`) takes them out again with indexed_slices; who does not reads the whole tensor,
/// which is computed only then. Throws InvalidArgumentError where values, indices and dense shape do not fit;
/// when it is run, `Index <i> at offset <o> in indices is out of range`.
Output to_dense(const Scope& s, const IndexedSlices& slices);

/// The slices that `gradient` was made of by to_dense; none for every other tensor, and for an empty output.
std::optional<IndexedSlices> indexed_slices(const Output& gradient);

}  // namespace kolo
