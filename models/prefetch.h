// Batches read ahead by a thread of their own while the step before them is computed.
#pragma once

#include <memory>
#include <set>

#include <kolo/core/tensor/allocator.h>
#include <kolo/models/batches.h>
#include <kolo/models/read_ahead.h>

namespace kolo::models {

/// A BatchSource in front of another: the same batches in the same order, and positions of the batches handed
/// out, not of those read ahead. One consumer thread; the thread "kolo-input" reads. The destructor stops and
/// joins it.
class Prefetcher : public BatchSource {
 public:
  /// Reads at most `depth` batches ahead. Throws InvalidArgumentError if depth < 1.
  explicit Prefetcher(std::unique_ptr<BatchSource> source, int depth = 2);

  /// Swaps `batch` for the next one; the tensors it held are filled anew later unless the caller shares them.
  /// Waits until the batch is read. An error of the source comes once the batches before it are taken, at
  /// each call until seek().
  void next(Batch& batch) override;
  BatchPosition position() const override { return position_; }
  /// Drops what was read ahead and goes on from there, also after an error.
  void seek(const BatchPosition& position) override;
  /// From the next next() on what it is given back lies in this memory when it is filled anew: see
  /// feed_memory(). The memory outlives all batches.
  void read_into(Allocator& memory) { memory_ = &memory; }

 private:
  struct Slot {
    Batch batch;
    BatchPosition after;  // the source's position once this batch is taken
  };

  void bring(Tensor& tensor);

  const std::unique_ptr<BatchSource> source_;  // the input thread's
  Allocator* memory_ = nullptr;
  std::set<const std::byte*> there_;  // addresses of tensors in that memory
  BatchPosition position_;
  ReadAhead<Slot> ahead_;
};

}  // namespace kolo::models
