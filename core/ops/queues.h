// Queues of tensors, and accumulators of gradients.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/graph/scope.h>

namespace kolo {

// Queues: elements that one run puts in and another takes out, first in, first out.

/// Capacity, shapes and name of a queue.
struct FIFOQueueOptions {
  std::int64_t capacity = -1;  // elements, at least 1; −1: any number
  /// Of the components, fully known; none: any shapes, and elements can only be taken one by one.
  std::vector<Shape> shapes = {};
  /// Queues of one name in one container (Scope::container) are one queue; "": the node's own name.
  std::string shared_name = {};
};

/// A handle; as cheap as an Output. An element is a tuple of tensors, one for each of `types`. What waits for
/// room or for elements holds no thread, is served in the order in which it came, and ends with its run.
/// A queue of a local session lives as long as the session. On a server it lives in its container, for all
/// sessions, until that is reset. No gradient flows through it.
class FIFOQueue {
 public:
  /// The node is named s.named(…), "FIFOQueue" without. Throws InvalidArgumentError for options that cannot
  /// be. The first run of a queue that is shared throws it, too: `Shared queue '<q>' has capacity <a> but
  /// requested capacity was <b>`, likewise for component types and shapes.
  FIFOQueue(const Scope& s, std::vector<DType> types, FIFOQueueOptions options = {});

  const std::string& name() const { return handle_.node->name(); }
  Output handle() const { return handle_; }
  const std::vector<DType>& types() const { return types_; }
  /// Of the components; none: any.
  const std::vector<Shape>& shapes() const { return shapes_; }

 private:
  Output handle_;
  std::vector<DType> types_;
  std::vector<Shape> shapes_;
};

/// Puts one element in; waits for room. Throws InvalidArgumentError `Wrong number of components in tuple.
/// Expected <a>, got <b>`, `Type mismatch in tuple component <i>. …`, `Shape mismatch in tuple component <i>.
/// Expected <s>, got <t>`, here or, where shapes are unknown, in the run. A run throws CancelledError
/// `FIFOQueue '<q>' is closed.`
Operation enqueue(const Scope& s, const FIFOQueue& queue, const Outputs& components);
/// Puts the rows of the components in, one element for each: all have as many. Waits until the last is in; a
/// run that ends before has put some in.
Operation enqueue_many(const Scope& s, const FIFOQueue& queue, const Outputs& components);

/// Takes one element out; waits for it. A run throws OutOfRangeError `FIFOQueue '<q>' is closed and has
/// insufficient elements (requested <n>, current size <k>)`: then, and where the run ends before it has all
/// that it asked for, the elements are at the front of the queue again.
Outputs dequeue(const Scope& s, const FIFOQueue& queue);
/// Of a queue of numbers, i64: takes the greatest if it is greater than `than`, an i64, and drops those that
/// are smaller than what it takes; waits for one, and lets those behind it have what it does not want.
/// generation: an i64; where it is not the queue's (reset_queue) the run throws AbortedError with the text of
/// the last reset. Throws InvalidArgumentError for other queues.
Output dequeue_newest(const Scope& s, const FIFOQueue& queue, Output than, Output generation);
/// Takes `n` elements, at least 0, and stacks them along a new first dimension. Throws InvalidArgumentError
/// for a queue without shapes.
Outputs dequeue_many(const Scope& s, const FIFOQueue& queue, std::int64_t n);
/// The same, but of a closed queue that has less than `n`: what is left, at least one element.
Outputs dequeue_up_to(const Scope& s, const FIFOQueue& queue, std::int64_t n);

/// From then on nothing is put in. Who waits for room may finish; with cancel_pending such a run ends in
/// CancelledError `Enqueue operation was cancelled`. Waits for nobody. A run throws AbortedError `Queue '<q>'
/// is already closed.` the second time.
Operation close_queue(const Scope& s, const FIFOQueue& queue, bool cancel_pending = false);
/// Empties the queue and opens it again, as if it had just been made; who waits at it ends in AbortedError
/// with this text. generation: an i64, from then on the queue's, which is 0 at first: who began before the
/// reset and comes to the queue behind it is known by another one.
Operation reset_queue(const Scope& s, const FIFOQueue& queue, const std::string& text,
                      Output generation = {});
Output queue_generation(const Scope& s, const FIFOQueue& queue);
/// Elements in the queue: an i32.
Output queue_size(const Scope& s, const FIFOQueue& queue);
Output queue_is_closed(const Scope& s, const FIFOQueue& queue);

// Gradients of several runs, added as they come and taken as their mean.

/// Order and name of an accumulator.
struct AccumulatorOptions {
  /// Keep the gradients and add them when they are taken: by sender (job, then task), and of one sender as
  /// they came. The bits of the mean then do not depend on which of them came first.
  bool ordered = false;
  /// Accumulators of one name in one container (Scope::container) are one; "": the node's own name.
  std::string shared_name = {};
};

/// A handle, as cheap as an Output, and a value. An accumulator has a sum, a number of gradients in it and a
/// time step of its own, at first 0; it lives as long as its session, on a server as long as its container.
/// No gradient flows through it. f32 and f64.
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
