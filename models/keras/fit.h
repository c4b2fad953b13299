// How long and on what a model is trained, and what comes of it.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/models/keras/data.h>

namespace kolo::keras {

class Model;

/// Names and numbers in order: what callbacks are told, and may add to. A value.
class Logs {
 public:
  using Entries = std::vector<std::pair<std::string, double>>;
  Logs() = default;
  Logs(Entries entries) : entries_(std::move(entries)) {}
  /// None where there is no such name.
  std::optional<double> find(const std::string& name) const;
  /// In its place where the name is there, else at the end.
  void set(const std::string& name, double value);
  const Entries& entries() const { return entries_; }
  /// "loss,acc,val_loss".
  std::string names() const;

 private:
  Entries entries_;
};

/// What a callback knows of the fit that calls it.
struct CallbackParams {
  std::int64_t batch_size = 0, epochs = 0, steps = 0, samples = 0, validation_samples = 0;
  int verbose = 1;
  bool do_validation = false;
  bool unequal_ranks = false;  // batches of the ranks may differ in size
  std::vector<std::string> metrics = {};
};

/// Told of a training, on its thread. What one writes into logs is seen by those behind it. Order: a
/// BaseLogger (logger_callbacks.h), the user's in their list's order, a History, a ProgbarLogger. Callbacks
/// that take longer than a batch are warned of: `is slow compared to the batch update`.
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_train_begin(Logs& /*logs*/) {}
  virtual void on_train_end(Logs& /*logs*/) {}
  /// epoch: from 0.
  virtual void on_epoch_begin(std::int64_t /*epoch*/, Logs& /*logs*/) {}
  /// logs: loss, metrics, val_….
  virtual void on_epoch_end(std::int64_t /*epoch*/, Logs& /*logs*/) {}
  /// logs: batch, size.
  virtual void on_batch_begin(std::int64_t /*batch*/, Logs& /*logs*/) {}
  /// logs: batch, size, loss, metrics.
  virtual void on_batch_end(std::int64_t /*batch*/, Logs& /*logs*/) {}

  /// What it has seen of this training, for CheckpointCallback: a text, given back behind on_train_begin of
  /// the training that goes on. "": nothing.
  virtual std::string state() const { return {}; }
  virtual void set_state(const std::string& /*state*/) {}
  /// What of it are tensors, by name, not strings; given back before set_state. Saved as tensors: those of
  /// each rank, once where ranks hold the same.
  virtual std::map<std::string, Tensor> state_tensors() const { return {}; }
  virtual void set_state_tensors(const std::map<std::string, Tensor>& /*tensors*/) {}

  /// By fit, before on_train_begin. The model is fit's own handle.
  void attach(const Model& model, const CallbackParams& params);
  const Model& model() const { return *model_; }
  const CallbackParams& params() const { return params_; }

 private:
  std::shared_ptr<const Model> model_;
  CallbackParams params_;
};

/// Values by name, one for each epoch; loss first, then metrics, val_…, then what callbacks added. What fit
/// returns; one in the list of callbacks has what those before it have added.
class History : public Callback {
 public:
  std::vector<std::int64_t> epoch;
  std::vector<std::pair<std::string, std::vector<double>>> history;
  /// Throws NotFoundError for another name.
  const std::vector<double>& operator[](const std::string& name) const;

  void on_train_begin(Logs& logs) override;
  void on_epoch_end(std::int64_t epoch, Logs& logs) override;
};

/// A value: a callback in a list, one of <kolo/models/keras/callbacks.h> by value, or a shared pointer to
/// one's own.
class AnyCallback {
 public:
  template <typename T>
  requires(std::derived_from<T, Callback>) AnyCallback(T callback)
      : callback_(std::make_shared<T>(std::move(callback))) {}
  template <typename T>
  requires(std::derived_from<T, Callback>) AnyCallback(std::shared_ptr<T> callback)
      : callback_(std::move(callback)) {}
  Callback& operator*() const { return *callback_; }
  Callback* operator->() const { return callback_.get(); }

 private:
  std::shared_ptr<Callback> callback_;
};

/// Every epoch's order of samples: one permutation of all; of whole batches, the remainder last; as they are.
struct Shuffle {
  Shuffle(bool samples) : of_samples(samples) {}
  /// Throws InvalidArgumentError unless it is "batch".
  Shuffle(const char* text);
  bool of_samples = true;
  bool of_batches = false;
};

/// What Model::fit takes, as Keras' fit.
struct FitOptions {
  std::int64_t batch_size = 32;  // the last one of an epoch may be smaller; a source has its own
  std::int64_t epochs = 1;       // the index at which training ends
  int verbose = 1;  // 0: nothing; 1: a line that is rewritten; 2: one line an epoch. Rank 0 prints
  std::vector<AnyCallback> callbacks = {};
  double validation_split = 0;  // this share of the samples, the last ones, is not trained on
  std::optional<Samples> validation_data = {};
  Shuffle shuffle = true;  // by shuffle_samples(workspace's seed + rank, epoch)
  /// Weights of samples by their class, a whole number or the largest of a vector. Throws
  /// InvalidArgumentError
  /// ``class_weight` must contain all classes in the data. …`; of models of one output.
  std::map<std::int64_t, double> class_weight = {};
  Arrays sample_weight = {};
  std::int64_t initial_epoch = 0;
  std::optional<std::int64_t> steps_per_epoch = {};   // of a source, which needs it
  std::optional<std::int64_t> validation_steps = {};  // of a validation source, which needs it

  Source* validation_source = nullptr;  // borrowed, instead of validation_data
  // Ranks that are given the same arrays share them out: of each global batch, ranks · batch_size samples of
  // one permutation for all, rank r takes the r-th part. Validation samples are shared out, too, each once.
  bool shard = false;
  // The same with batches of so many samples, whatever the number of ranks, which then makes no difference to
  // the training; batch_size has no meaning. Rank r takes ⌊rG/R⌋ … ⌊(r+1)G/R⌋−1 of each, and the average of
  // gradients is that over the samples. Throws InvalidArgumentError for fewer than ranks. 0: by batch_size.
  std::int64_t global_batch_size = 0;
  // Of samples that are shared out: those at an epoch's end that fill no global batch are left out, or make a
  // smaller one.
  models::EpochEnd epoch_end = models::EpochEnd::drop;
  // Goes on where the CheckpointCallback among the callbacks has saved the whole training, bit by bit; with
  // another number of ranks, or other batches, at the next sample of those that are shared out. Starts where
  // nothing is there.
  bool resume = false;
};

/// What Model::evaluate takes.
struct EvaluateOptions {
  std::int64_t batch_size = 32;
  int verbose = 1;
  Arrays sample_weight = {};
  std::optional<std::int64_t> steps = {};  // of a source; none: to its end
  bool shard = false;  // ranks that are given the same samples take a part each; all get the same numbers
};

/// What Model::predict takes.
struct PredictOptions {
  std::int64_t batch_size = 32;
  int verbose = 0;
  std::optional<std::int64_t> steps = {};  // of a source; none: to its end
};

}  // namespace kolo::keras
