// Batches read ahead by a thread of their own while the step before them is computed.
#pragma once

#include <memory>

#include <kolo/core/runtime/session.h>
#include <kolo/core/tensor/allocator.h>
#include <kolo/models/batches.h>
#include <kolo/models/read_ahead.h>

namespace kolo {
class FeedSender;
}

namespace kolo::models {

/// A BatchSource in front of another: the same batches in the same order, and positions of the batches handed
/// out, not of those read ahead. One consumer thread; the thread "kolo-input" reads. The destructor stops and
/// joins it.
class Prefetcher : public BatchSource {
 public:
  /// Reads at most `depth` batches ahead. Throws InvalidArgumentError if depth < 1.
  explicit Prefetcher(std::unique_ptr<BatchSource> source, int depth = 2);
  ~Prefetcher() override;

  /// Swaps `batch` for the next one; the tensors it held are filled anew later unless the caller shares them.
  /// Waits until the batch is read. An error of the source comes once the batches before it are taken, at
  /// each call until seek().
  void next(Batch& batch) override;
  BatchPosition position() const override { return position_; }
  /// Drops what was read ahead and goes on from there, also after an error.
  void seek(const BatchPosition& position) override;
  /// From the next next() on batches are for this session: on its GPU, where they are copied while earlier
  /// steps run, or in pinned memory where it has several; see FeedSender. What was read ahead is read again.
  void read_for(Session& session);

 private:
  struct Slot {
    Batch batch;          // as the source fills it
    Batch sent;           // where there is a sender
    BatchPosition after;  // the source's position once this batch is taken
  };

  void read(Slot& slot);

  const std::unique_ptr<BatchSource> source_;  // the input thread's
  std::unique_ptr<FeedSender> sender_;         // likewise; changes while nothing is read
  Allocator* memory_ = nullptr;                // for batches as they are filled; nullptr: where they are
  BatchPosition position_;
  ReadAhead<Slot> ahead_;
};

}  // namespace kolo::models
