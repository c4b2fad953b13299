// Queues: elements that one run puts in and another takes out, first in, first out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

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

}  // namespace kolo
