// Batches read ahead by a thread of their own while the step before them is computed.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include <kolo/core/base/mutex.h>
#include <kolo/models/batches.h>

namespace kolo::models {

/// A BatchSource in front of another: the same batches in the same order, and positions of the batches handed
/// out, not of those read ahead. One consumer thread; the thread "kolo-input" reads. The destructor stops and
/// joins it.
class Prefetcher : public BatchSource {
 public:
  /// Reads at most `depth` batches ahead. Throws InvalidArgumentError if depth < 1.
  explicit Prefetcher(std::unique_ptr<BatchSource> source, int depth = 2);
  ~Prefetcher() override;
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Swaps `batch` for the next one; the tensors it held are filled anew later unless the caller shares them.
  /// Waits until the batch is read. An error of the source comes once the batches before it are taken, at
  /// each call until seek().
  void next(Batch& batch) override KOLO_EXCLUDES(mutex_);
  BatchPosition position() const override KOLO_EXCLUDES(mutex_);
  /// Drops what was read ahead and goes on from there, also after an error.
  void seek(const BatchPosition& position) override KOLO_EXCLUDES(mutex_);

 private:
  struct Slot {
    Batch batch;
    BatchPosition after;  // the source's position once this batch is taken
  };

  void read();
  Slot& slot(std::int64_t number) { return ring_[static_cast<std::size_t>(number) % ring_.size()]; }
  bool may_read() const KOLO_REQUIRES(mutex_) {
    return !error_ && filled_ - taken_ < static_cast<std::int64_t>(ring_.size());
  }

  // Touched by the input thread alone while reading_ is set, and under mutex_ by the consumer while it is
  // not. The slots [taken_, filled_) are the consumer's.
  const std::unique_ptr<BatchSource> source_;
  std::vector<Slot> ring_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::int64_t filled_ KOLO_GUARDED_BY(mutex_) = 0;
  std::int64_t taken_ KOLO_GUARDED_BY(mutex_) = 0;
  bool reading_ KOLO_GUARDED_BY(mutex_) = false;
  bool stopping_ KOLO_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ KOLO_GUARDED_BY(mutex_);
  BatchPosition position_ KOLO_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace kolo::models
