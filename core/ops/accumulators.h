// Gradients of several runs, added as they come and taken as their mean.
#pragma once

#include <cstdint>
#include <string>

#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/graph/scope.h>

namespace kolo {

/// Order and name of an accumulator.
struct AccumulatorOptions {
  /// Keep the gradients and add them when they are taken: by sender (job, then task), and of one sender as
  /// they came. The bits of the mean then do not depend on which of them came first.
  bool ordered = false;
  /// Accumulators of one name in one container (Scope::container) are one; "": the node's own name.
  std::string shared_name = {};
};

/// A handle, as cheap as an Output. An accumulator has a sum, a number of gradients in it and a time step of
/// its own, at first 0; it lives as long as its session, on a server as long as its container. No gradient
/// flows through it. f32 and f64.
class Accumulator {
 public:
  const std::string& name() const { return handle_.node->name(); }
  Output handle() const { return handle_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }

 protected:
  Accumulator(const Scope& s, const char* op, DType dtype, Shape shape, AccumulatorOptions options);

 private:
  Output handle_;
  DType dtype_;
  Shape shape_;
};

/// Adds whole tensors of one type and shape.
class ConditionalAccumulator : public Accumulator {
 public:
  /// The node is named s.named(…), "ConditionalAccumulator" without. Throws InvalidArgumentError for a shape
  /// that is not fully known. The first run of one that is shared throws it, too, where types or shapes
  /// differ: `Shared accumulator '<a>' has …`.
  ConditionalAccumulator(const Scope& s, DType dtype, Shape shape, AccumulatorOptions options = {});
};

/// Of rows of a tensor of the given shape, which has at least one dimension.
class SparseConditionalAccumulator : public Accumulator {
 public:
  SparseConditionalAccumulator(const Scope& s, DType dtype, Shape shape, AccumulatorOptions options = {});
};

/// Adds a gradient; without a word it is dropped where local_step, an i64, is less than the accumulator's
/// step. generation: an i64; where it is not the accumulator's (reset_accumulator) the run throws
/// AbortedError `Accumulator '<a>' was reset`. Throw InvalidArgumentError `Shape mismatch: expected <s>, got
/// <t>`, here or in the run; of rows also `Index <i> at offset <o> in indices is out of range`. A row that
/// one gradient lists twice is their sum.
Operation apply_grad(const Scope& s, const ConditionalAccumulator& accumulator, Output gradient,
                     Output local_step, Output generation = {});
Operation apply_grad(const Scope& s, const SparseConditionalAccumulator& accumulator,
                     const IndexedSlices& gradient, Output local_step, Output generation = {});

/// Waits until there are `n` gradients or more, in the order in which those came who wait, and holds no
/// thread meanwhile; then takes the mean of all that there are, empties the accumulator and adds one to its
/// step. Of rows: each the mean over the gradients that have it, by ascending i64 indices. A run that ends
/// before takes nothing. Throws InvalidArgumentError `Argument num_required must be positive, but was <n>`.
Output take_grad(const Scope& s, const ConditionalAccumulator& accumulator, std::int64_t n);
IndexedSlices take_grad(const Scope& s, const SparseConditionalAccumulator& accumulator, std::int64_t n);

/// Sets the accumulator's step to an i64; warns where it goes back.
Operation set_global_step(const Scope& s, const Accumulator& accumulator, Output step);
/// Forgets the gradients that there are, not the step; who waits for them ends in AbortedError `Accumulator
/// '<a>' was reset`. generation: an i64, from then on the accumulator's, which is 0 at first.
Operation reset_accumulator(const Scope& s, const Accumulator& accumulator, Output generation = {});
/// Gradients in the sum: an i32.
Output num_accumulated(const Scope& s, const Accumulator& accumulator);
/// Gradients that came too late, of all senders: an i64.
Output num_dropped(const Scope& s, const Accumulator& accumulator);

}  // namespace kolo
