// What fit trains on, batch by batch: samples in memory in an order of each epoch's own, or a source.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <kolo/models/keras/trainer_internal.h>

namespace kolo::keras::detail {

/// Sums of a batch's values, weighted by its samples.
struct Means {
  explicit Means(std::size_t values) : sums(values) {}
  void add(const std::vector<double>& values, std::int64_t samples);
  std::vector<double> means() const;

  std::vector<double> sums;
  std::int64_t size = 0;
};

/// One thread.
class TrainingData {
 public:
  virtual ~TrainingData() = default;
  /// Batches of an epoch.
  virtual std::int64_t steps() const = 0;
  /// Of an epoch on this rank; 0 where nobody knows.
  virtual std::int64_t samples() const = 0;
  /// The ranks' parts of a step may differ in size.
  virtual bool has_unequal_parts() const { return false; }
  /// Goes to a place of an epoch; a source that cannot be told where is drawn up to it.
  virtual void seek(std::int64_t epoch, const DataPlace& place) = 0;
  /// No batch of the epoch begins there.
  virtual bool is_over(const DataPlace& place) const = 0;
  /// Where batch `batch` of an epoch begins that has been trained as this one is.
  virtual DataPlace place_of(std::int64_t batch) const = 0;
  /// Of samples in memory: their number has changed in the middle of the epoch, which must begin anew
  /// (models::in_epoch_of). A source knows its own.
  virtual bool begins_anew(std::int64_t /*epoch*/, const DataPlace& /*place*/, bool /*log*/) const {
    return false;
  }
  /// Nothing at a source's end.
  virtual std::optional<Feed> next() = 0;
};

struct BatchOrder {
  std::uint64_t seed = 1;
  std::int64_t batch_size = 32;
  Shuffle shuffle = true;
  // Each global batch is shared out among `ranks`. Otherwise the samples are this rank's alone, and an
  // epoch's last batch has what is left.
  bool shared = false;
  std::int64_t global_batch_size = 0;                   // shared: of all ranks; 0: ranks · batch_size
  models::EpochEnd epoch_end = models::EpochEnd::drop;  // shared
  int rank = 0, ranks = 1;
};
/// Borrows the trainer.
std::unique_ptr<TrainingData> array_data(const Trainer& trainer, Feed samples, const BatchOrder& order);
/// Borrows both. first_epoch: the one whose first batch the source is at.
std::unique_ptr<TrainingData> source_data(const Trainer& trainer, Source& source, std::int64_t steps,
                                          std::int64_t first_epoch);

/// The same batches, of which a thread of its own prepares the next two of an epoch, and puts them on the
/// session's GPU. Borrows the trainer.
std::unique_ptr<TrainingData> read_ahead(const Trainer& trainer, std::unique_ptr<TrainingData> data);

/// Samples [begin, end), sharing memory.
Feed part_of(const Feed& all, std::int64_t begin, std::int64_t end);
/// [N]: each sample's by its class. Throws InvalidArgumentError for a class without weight, and where there
/// are several outputs.
Tensor weights_by_class(const Feed& all, const std::map<std::int64_t, double>& by_class);

/// Loss and metrics over all samples; on rank `rank` of `ranks` of its part of them, the numbers of all.
/// line: 1 shows the progress. Collective with several ranks.
std::vector<double> evaluated(Trainer& trainer, const Feed& all, std::int64_t batch_size, int line,
                              int rank = 0, int ranks = 1);
std::vector<double> evaluated(Trainer& trainer, Source& source, std::optional<std::int64_t> steps, int line);
/// Throws InvalidArgumentError unless it is at least 1.
void check_batch_size(std::int64_t batch_size);

}  // namespace kolo::keras::detail
