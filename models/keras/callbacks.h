// Callbacks that watch a training: they stop it, save it, change its rate, write it down. All are values for
// the list FitOptions::callbacks; what one has seen begins anew with each fit.
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/summary/summary_writer.h>
#include <kolo/models/keras/fit.h>

namespace kolo::keras {

/// As Keras' EarlyStopping takes them. patience: epochs.
struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  double min_delta = 0;  // a smaller change is no improvement
  std::int64_t patience = 0;
  int verbose = 0;
  std::string mode = "auto";  // "min", "max"; auto: max if the monitor contains "acc"
  std::optional<double> baseline = {};
  bool restore_best_weights = false;
};
/// Stops after `patience` epochs without an improvement. Without the monitor in the logs it warns and does
/// nothing, as all callbacks here.
class EarlyStopping : public Callback {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options = {});
  void on_train_begin(Logs& logs) override;
  void on_epoch_end(std::int64_t epoch, Logs& logs) override;
  void on_train_end(Logs& logs) override;
  std::string state() const override;
  void set_state(const std::string& state) override;
  std::map<std::string, Tensor> state_tensors() const override;
  void set_state_tensors(const std::map<std::string, Tensor>& tensors) override;

 private:
  EarlyStoppingOptions options_;
  bool larger_is_better_;
  double best_ = 0;
  std::int64_t wait_ = 0, stopped_epoch_ = -1;
  std::vector<Tensor> best_weights_;
};

/// As Keras' ModelCheckpoint takes them.
struct ModelCheckpointOptions {
  std::string monitor = "val_loss";
  int verbose = 0;
  bool save_best_only = false;
  bool save_weights_only = false;
  std::string mode = "auto";
  std::int64_t period = 1;  // epochs
};
/// Saves the model, on rank 0. path: with {epoch:02d}, from 1, and {val_loss:.2f} for any name of the logs;
/// another name is an InvalidArgumentError that lists the logs.
class ModelCheckpoint : public Callback {
 public:
  /// Throws UnimplementedError for a path that ends in .h5 or .hdf5.
  explicit ModelCheckpoint(std::string path, ModelCheckpointOptions options = {});
  void on_train_begin(Logs& logs) override;
  void on_epoch_end(std::int64_t epoch, Logs& logs) override;
  std::string state() const override;
  void set_state(const std::string& state) override;

 private:
  void save(const std::string& path) const;
  std::string path_;
  ModelCheckpointOptions options_;
  bool larger_is_better_;
  double best_ = 0;
  std::int64_t epochs_since_ = 0;
};

/// As Keras' ReduceLROnPlateau takes them. patience and cooldown: epochs.
struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;
  std::int64_t patience = 10;
  int verbose = 0;
  std::string mode = "auto";
  double min_delta = 1e-4;
  std::int64_t cooldown = 0;
  double min_lr = 0;
};
/// Multiplies the rate by factor after `patience` epochs without an improvement. Adds lr to the logs: the
/// rate of the epoch that has ended.
class ReduceLROnPlateau : public Callback {
 public:
  /// Throws InvalidArgumentError `ReduceLROnPlateau does not support a factor >= 1.0.`
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {});
  void on_train_begin(Logs& logs) override;
  void on_epoch_end(std::int64_t epoch, Logs& logs) override;
  std::string state() const override;
  void set_state(const std::string& state) override;

 private:
  ReduceLROnPlateauOptions options_;
  bool larger_is_better_;
  double best_ = 0;
  std::int64_t wait_ = 0, cooling_ = 0;
};

/// Sets the rate of each epoch: f(epoch, rate before). Throws InvalidArgumentError `The output of the
/// "schedule" function should be float.` where it is not finite. Adds lr to the logs.
class LearningRateScheduler : public Callback {
 public:
  using Schedule = std::function<double(std::int64_t epoch, double lr)>;
  explicit LearningRateScheduler(Schedule schedule, int verbose = 0);
  explicit LearningRateScheduler(const std::function<double(std::int64_t epoch)>& schedule, int verbose = 0);
  void on_epoch_begin(std::int64_t epoch, Logs& logs) override;
  void on_epoch_end(std::int64_t epoch, Logs& logs) override;

 private:
  Schedule schedule_;
  int verbose_;
};

/// One line an epoch, on rank 0: epoch, then the logs in the order of their names. append: to what is there.
class CSVLogger : public Callback {
 public:
  explicit CSVLogger(std::string file, std::string separator = ",", bool append = false);
  /// Throws NotFoundError for a file that cannot be opened.
  void on_train_begin(Logs& logs) override;
  void on_epoch_end(std::int64_t epoch, Logs& logs) override;
  void on_train_end(Logs& logs) override;

 private:
  std::string path_, separator_;
  bool append_, needs_header_ = true;
  std::vector<std::string> keys_;
  std::shared_ptr<std::FILE> file_;
};

/// As Keras' TensorBoard takes them.
struct TensorBoardOptions {
  /// "epoch", "batch", or the samples between two points of the curves.
  struct UpdateFreq {
    UpdateFreq(const char* text) : UpdateFreq(std::string(text)) {}
    /// Throws InvalidArgumentError for another text.
    UpdateFreq(const std::string& text);
    UpdateFreq(std::int64_t every) : samples(every) {}
    std::int64_t samples = 0;  // 0: by epoch; 1: with each batch
  };
  UpdateFreq update_freq = "epoch";
  bool write_graph = true;
  std::int64_t histogram_freq = 0;  // epochs between histograms of the weights; 0: none
};
/// Event files for TensorBoard, by rank 0: the logs as curves, over epochs or the samples seen.
class TensorBoard : public Callback {
 public:
  explicit TensorBoard(std::string log_dir = "./logs", TensorBoardOptions options = {});
  void on_train_begin(Logs& logs) override;
  void on_batch_end(std::int64_t batch, Logs& logs) override;
  void on_epoch_end(std::int64_t epoch, Logs& logs) override;
  void on_train_end(Logs& logs) override;

 private:
  void write(const Logs& logs, std::int64_t step);
  std::string log_dir_;
  TensorBoardOptions options_;
  std::shared_ptr<SummaryWriter> writer_;
  std::int64_t samples_ = 0, written_ = 0;
};

/// Stops with `Batch <i>: Invalid loss, terminating training` when the loss is not finite.
class TerminateOnNaN : public Callback {
 public:
  void on_batch_end(std::int64_t batch, Logs& logs) override;
};

/// A function for each event of a Callback; those left out do nothing.
struct LambdaCallbackOptions {
  std::function<void(std::int64_t epoch, Logs& logs)> on_epoch_begin = {};
  std::function<void(std::int64_t epoch, Logs& logs)> on_epoch_end = {};
  std::function<void(std::int64_t batch, Logs& logs)> on_batch_begin = {};
  std::function<void(std::int64_t batch, Logs& logs)> on_batch_end = {};
  std::function<void(Logs& logs)> on_train_begin = {};
  std::function<void(Logs& logs)> on_train_end = {};
};
/// Calls functions, on the thread that calls fit.
class LambdaCallback : public Callback {
 public:
  explicit LambdaCallback(LambdaCallbackOptions options) : options_(std::move(options)) {}
  void on_train_begin(Logs& logs) override;
  void on_train_end(Logs& logs) override;
  void on_epoch_begin(std::int64_t epoch, Logs& logs) override;
  void on_epoch_end(std::int64_t epoch, Logs& logs) override;
  void on_batch_begin(std::int64_t batch, Logs& logs) override;
  void on_batch_end(std::int64_t batch, Logs& logs) override;

 private:
  LambdaCallbackOptions options_;
};

}  // namespace kolo::keras
