// Training and evaluation batches: which samples each rank sees in which step, the same on every machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/core/tensor/tensor.h>
#include <kolo/models/read_ahead.h>
#include <kolo/models/samples.h>

namespace kolo::models {

enum class ImageLayout { chw /* [B,C,H,W], or as samples are */, flat /* [B,C·H·W] */ };

/// The batch that comes next. With another global batch size the same position means the same samples taken.
struct BatchPosition {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;              // global batches of the epoch that are taken
  std::int64_t global_batch_size = 0;  // samples that all ranks take in a step
  bool operator==(const BatchPosition&) const = default;
};
/// `{"batch":7,"epoch":2,"global_batch_size":128}`, as checkpoints store it.
std::string to_json(const BatchPosition& position);
/// Throws DataLossError naming the text if it is not what to_json writes.
BatchPosition position_from_json(std::string_view text);

/// Batches in order, without an end. One thread at a time.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Fills `batch` and moves on. Tensors of an earlier batch are filled anew, without an allocation, if
  /// nobody else shares them.
  virtual void next(Batch& batch) = 0;
  /// Of the batch that the coming next() hands out.
  virtual BatchPosition position() const = 0;
  /// Goes to `position`. Taken with another global batch size, it goes on at batch ⌊samples taken ÷ size⌋ of
  /// the epoch and rank 0 says so in one info line. Throws InvalidArgumentError for what is no position;
  /// nothing has moved then.
  virtual void seek(const BatchPosition& position) = 0;
};

/// The size and order of batches, and this rank's part of them.
struct BatchOptions {
  std::int64_t batch_size = 64;  // samples per rank and step, ≥ 1
  int rank = 0;                  // 0 … ranks − 1
  int ranks = 1;
  std::uint64_t seed = 1;  // of the order of the samples; equal on all ranks
  ImageLayout layout = ImageLayout::chw;
  Augmentation augmentation = {};  // of Batches of a Dataset
  int threads = 1;                 // that read a batch's samples, where files are decoded; ≥ 1
};

/// One permutation of all samples per (seed, epoch). Global batch b is its b-th run of R·B samples, rank r
/// takes samples r·B … (r+1)·B−1 of it; an incomplete last batch is dropped. What changes samples at random
/// is drawn anew for each epoch, from seed, epoch and sample alone. One thread at a time.
class Batches : public BatchSource {
 public:
  /// Throws InvalidArgumentError if the options are out of range, if there are more ranks than samples, or if
  /// the batch is larger than a rank's share of the samples.
  Batches(std::shared_ptr<const SampleSet> samples, const BatchOptions& options);
  /// Of image_samples.
  Batches(Dataset dataset, const BatchOptions& options);

  /// ⌊N / (R·B)⌋
  std::int64_t steps_per_epoch() const { return steps_per_epoch_; }
  std::int64_t global_batch_size() const { return options_.batch_size * options_.ranks; }
  void next(Batch& batch) override;
  BatchPosition position() const override { return position_; }
  void seek(const BatchPosition& position) override;

 private:
  std::shared_ptr<const SampleSet> samples_;
  BatchOptions options_;
  Shape samples_shape_, labels_shape_;
  std::unique_ptr<ReadThreads> threads_;
  std::int64_t steps_per_epoch_ = 0;
  BatchPosition position_;
  std::vector<std::int64_t> order_;  // of epoch order_epoch_
  std::int64_t order_epoch_ = -1;
};

/// Every sample once over all ranks, in the order of the data set: rank r takes samples [N·r/R, N·(r+1)/R),
/// its last batch may be short. Ranks beyond the number of samples have none. One thread at a time.
class EvaluationBatches {
 public:
  /// `options.seed` has no meaning here. Throws InvalidArgumentError if the options are out of range.
  EvaluationBatches(std::shared_ptr<const SampleSet> samples, const BatchOptions& options);
  EvaluationBatches(Dataset dataset, const BatchOptions& options);

  /// Samples that this rank takes.
  std::int64_t size() const { return end_ - begin_; }
  /// False, and `batch` as it was, when all are taken.
  bool next(Batch& batch);
  /// Starts again.
  void rewind() { next_ = begin_; }

 private:
  std::shared_ptr<const SampleSet> samples_;
  BatchOptions options_;
  std::int64_t begin_, end_, next_;
  std::unique_ptr<ReadThreads> threads_;
};

/// Fills `order` with the permutation of 0 … samples − 1 that belongs to (seed, epoch): Fisher–Yates, from
/// the last element down (Durstenfeld, CACM 7 (1964), algorithm 235), over CounterRandom.
void shuffle_samples(std::uint64_t seed, std::int64_t epoch, std::int64_t samples,
                     std::vector<std::int64_t>& order);

}  // namespace kolo::models
