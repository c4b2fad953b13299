// Training and evaluation batches: which samples each rank sees in which step, the same on every machine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/core/tensor/tensor.h>
#include <kolo/models/read_ahead.h>
#include <kolo/models/samples.h>
#include <kolo/models/step_shares.h>

namespace kolo::models {

enum class ImageLayout { chw /* [B,C,H,W], or as samples are */, flat /* [B,C·H·W] */ };

/// The sample that comes next. It means the same on any number of ranks, with any size of their batches.
struct BatchPosition {
  std::int64_t epoch = 0;
  std::int64_t sample = 0;                   // samples of the epoch's order that are taken, by all ranks
  std::optional<std::uint64_t> seed = {};    // of that order; none: the source's own
  std::optional<std::int64_t> samples = {};  // of that epoch; none: nobody has told
  bool operator==(const BatchPosition&) const = default;
};
/// `{"epoch":2,"sample":700,"samples":7000,"seed":1}`, as checkpoints store it.
std::string to_json(const BatchPosition& position);
/// Also takes what earlier versions wrote, without samples, or
/// `{"batch":7,"epoch":2,"global_batch_size":128}`, which tells no seed either. Throws DataLossError naming
/// the text if it is none of these.
BatchPosition position_from_json(std::string_view text);
/// The position where an epoch has `samples` samples. If it had another number of them in the middle of it,
/// in another order therefore, it begins anew: else samples would be taken twice or never. log: a warning
/// says so.
BatchPosition in_epoch_of(std::int64_t samples, BatchPosition position, bool log);

/// Batches in order, without an end. One thread at a time.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Fills `batch` and moves on. Tensors of an earlier batch are filled anew, without an allocation, if
  /// nobody else shares them.
  virtual void next(Batch& batch) = 0;
  /// Of the batch that the coming next() hands out.
  virtual BatchPosition position() const = 0;
  /// Goes to exactly `position`, whatever number of ranks and size of batches it is from; where no step of
  /// the epoch begins there, to the next epoch, and where the samples have changed in number as in_epoch_of
  /// says. With another seed it goes on in the order of that seed, and rank 0 says so in one info line.
  /// Throws InvalidArgumentError for what is no position; nothing has moved then.
  virtual void seek(const BatchPosition& position) = 0;
};

/// The size and order of batches, and this rank's part of them.
struct BatchOptions {
  std::int64_t batch_size = 64;  // samples per rank and batch, ≥ 1
  // Of Batches: samples that all ranks together take in a step, whatever their number, ≥ ranks; batch_size
  // has no meaning then. 0: ranks · passes · batch_size.
  std::int64_t global_batch_size = 0;
  int passes = 1;                       // of Batches: batches that make a step, ≥ 1
  EpochEnd epoch_end = EpochEnd::drop;  // of Batches
  int rank = 0;                         // 0 … ranks − 1
  int ranks = 1;
  std::uint64_t seed = 1;  // of the order of the samples; equal on all ranks
  ImageLayout layout = ImageLayout::chw;
  Augmentation augmentation = {};  // of Batches of a Dataset
  int threads = 1;                 // that read a batch's samples, where files are decoded; ≥ 1
  bool as_pixels = false;          // of Batches: samples that are pixels stay u8, a quarter of the bytes
};

/// One permutation of all samples per (seed, epoch). A step takes its next G samples (global_batch_size), of
/// which rank r takes ⌊rG/R⌋ … ⌊(r+1)G/R⌋−1; of several passes each is a part of the step's samples, shared
/// out alike. Where these parts differ in size, Batch::weight tells by how much each counts. A rank whose
/// part is empty is given one of the step's samples, with weight 0. What changes samples at random is drawn
/// anew for each epoch, from seed, epoch and sample alone. One thread at a time.
class Batches : public BatchSource {
 public:
  /// Throws InvalidArgumentError if the options are out of range, if there are more ranks than samples, or if
  /// a step needs more samples than there are (EpochEnd::drop).
  Batches(std::shared_ptr<const SampleSet> samples, const BatchOptions& options);
  /// Of image_samples.
  Batches(Dataset dataset, const BatchOptions& options);

  /// ⌊N / G⌋, or ⌈N / G⌉ where the last step takes what is left.
  std::int64_t steps_per_epoch() const { return shares_.steps_per_epoch(); }
  /// How its steps and ranks share out an epoch.
  const StepShares& shares() const { return shares_; }
  /// Samples that all ranks take in a step.
  std::int64_t global_batch_size() const { return shares_.step_size; }
  /// Every Batch::weight is 1.
  bool has_equal_parts() const { return shares_.are_equal(); }
  void next(Batch& batch) override;
  BatchPosition position() const override { return position_; }
  void seek(const BatchPosition& position) override;

 private:
  std::shared_ptr<const SampleSet> samples_;
  BatchOptions options_;
  StepShares shares_;
  std::unique_ptr<ReadThreads> threads_;
  BatchPosition position_;           // with seed and samples
  int pass_ = 0;                     // of the step that begins at
  std::int64_t step_begin_ = 0;      // this sample of the epoch
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
