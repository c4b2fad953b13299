// Input without feeds: a step takes the next element of a sequence by itself.
#pragma once

#include <memory>
#include <vector>

#include <kolo/core/graph/scope.h>

namespace kolo {

/// A sequence of elements, each of several tensors, such as images and labels. Implemented by the user: a
/// data set, a reader, a Prefetcher around either. One call at a time, from any thread.
class ElementSource {
 public:
  struct Component {
    DType dtype;
    Shape shape;  // −1 where elements differ
  };
  virtual ~ElementSource() = default;
  /// Of every element. The same in each call, at least one.
  virtual std::vector<Component> components() const = 0;
  /// Puts the next element into `tensors`, one for each component; false, and nothing changed, at the end.
  /// Called again after the end: false, or, if the source has been rewound, the first element.
  virtual bool next(std::vector<Tensor>& tensors) = 0;
};

/// One output for each component. Each run that needs any of them takes one element; two runs never take the
/// same. A dimension that is unknown here is unknown to the kernels behind it: known shapes are faster. Graph
/// and sessions share the source; its position is its own (MonitoredTrainingSessionOptions::saved_state puts
/// it into checkpoints). A run throws OutOfRangeError `End of sequence` when there is none left, by which a
/// monitored session ends, and InvalidArgumentError for an element that does not fit the components. Throws
/// InvalidArgumentError here for a source without components.
Outputs make_iterator(const Scope& s, std::shared_ptr<ElementSource> source);

}  // namespace kolo
