#include <kolo/models/keras/callbacks.h>

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <sstream>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/text.h>
#include <kolo/core/runtime/group.h>
#include <kolo/models/keras/model.h>
#include <kolo/models/keras/progress_internal.h>

namespace kolo::keras {
namespace {

template <typename... Args>
void say(fmt::format_string<Args...> text, Args&&... args) {
  if (!detail::is_first_rank()) return;
  fmt::print("{}\n", fmt::format(text, std::forward<Args>(args)...));
  std::fflush(stdout);
}

bool maximizes(const std::string& mode, const std::string& monitor, const char* callback,
               bool fmeasure = false) {
  if (mode == "min" || mode == "max") return mode == "max";
  if (mode != "auto") log_warning("{} mode {} is unknown, fallback to auto mode.", callback, mode);
  return monitor.find("acc") != std::string::npos || (fmeasure && monitor.rfind("fmeasure", 0) == 0);
}

double worst(bool larger_is_better) {
  return (larger_is_better ? -1 : 1) * std::numeric_limits<double>::infinity();
}

bool is_better(double value, double than, double by, bool larger_is_better) {
  return larger_is_better ? value - by > than : value + by < than;
}

void check_lr(const Model& model) {
  if (!model.optimizer().has("lr")) throw InvalidArgumentError("Optimizer must have a \"lr\" attribute.");
}

// fmt's and Python's fields are the same.
std::string filled(const std::string& path, std::int64_t epoch, const Logs& logs) {
  fmt::dynamic_format_arg_store<fmt::format_context> fields;
  fields.push_back(fmt::arg("epoch", epoch));
  for (const auto& [name, value] : logs.entries()) fields.push_back(fmt::arg(name.c_str(), value));
  try {
    return fmt::vformat(path, fields);
  } catch (const fmt::format_error& error) {
    throw InvalidArgumentError("ModelCheckpoint: \"{}\": {}; its fields are epoch,{}", path, error.what(),
                               logs.names());
  }
}

}  // namespace

EarlyStopping::EarlyStopping(EarlyStoppingOptions options)
    : options_(std::move(options)),
      larger_is_better_(maximizes(options_.mode, options_.monitor, "EarlyStopping")) {}

void EarlyStopping::on_train_begin(Logs&) {
  wait_ = 0;
  stopped_epoch_ = -1;
  best_ = options_.baseline.value_or(worst(larger_is_better_));
  best_weights_.clear();
}

void EarlyStopping::on_epoch_end(std::int64_t epoch, Logs& logs) {
  const auto value = logs.find(options_.monitor);
  if (!value) {
    log_warning("Early stopping conditioned on metric `{}` which is not available. Available metrics are: {}",
                options_.monitor, logs.names());
    return;
  }
  if (is_better(*value, best_, std::abs(options_.min_delta), larger_is_better_)) {
    best_ = *value;
    wait_ = 0;
    if (options_.restore_best_weights) best_weights_ = model().get_weights();
    return;
  }
  if (++wait_ < options_.patience) return;
  stopped_epoch_ = epoch;
  model().set_stop_training(true);
  if (best_weights_.empty()) return;
  if (options_.verbose > 0) say("Restoring model weights from the end of the best epoch");
  model().set_weights(best_weights_);
}

void EarlyStopping::on_train_end(Logs&) {
  if (stopped_epoch_ >= 0 && options_.verbose > 0) say("Epoch {:05d}: early stopping", stopped_epoch_ + 1);
}

std::string EarlyStopping::state() const {
  return exact_text({best_, static_cast<double>(wait_), static_cast<double>(stopped_epoch_)});
}

// A training that has been stopped stays so, unless it is given more patience.
void EarlyStopping::set_state(const std::string& state) {
  const std::vector<double> numbers = parse_exact(state);
  best_ = numbers.at(0);
  wait_ = static_cast<std::int64_t>(numbers.at(1));
  stopped_epoch_ = static_cast<std::int64_t>(numbers.at(2));
  if (stopped_epoch_ >= 0 && wait_ >= options_.patience) model().set_stop_training(true);
  else stopped_epoch_ = -1;
  if (numbers.size() == 3) return;
  // As older checkpoints have it: all elements of the best weights.
  best_weights_ = model().get_weights();
  std::size_t next = 3;
  for (const Tensor& weight : best_weights_)
    for (float& element : weight.span<float>()) element = static_cast<float>(numbers.at(next++));
}

std::map<std::string, Tensor> EarlyStopping::state_tensors() const {
  std::map<std::string, Tensor> tensors;
  for (std::size_t i = 0; i < best_weights_.size(); ++i)
    tensors[fmt::format("best_weights/{}", i)] = best_weights_[i];
  return tensors;
}

void EarlyStopping::set_state_tensors(const std::map<std::string, Tensor>& tensors) {
  best_weights_.clear();
  for (std::size_t i = 0; i < tensors.size(); ++i)
    best_weights_.push_back(tensors.at(fmt::format("best_weights/{}", i)));
}

ModelCheckpoint::ModelCheckpoint(std::string path, ModelCheckpointOptions options)
    : path_(std::move(path)),
      options_(std::move(options)),
      larger_is_better_(maximizes(options_.mode, options_.monitor, "ModelCheckpoint", true)) {
  const std::string suffix = std::filesystem::path(path_).extension().string();
  if (suffix == ".h5" || suffix == ".hdf5")
    throw UnimplementedError(
        "ModelCheckpoint: {}: HDF5 is not written; models are <path>.json and <path>.safetensors", path_);
}

void ModelCheckpoint::on_train_begin(Logs&) {
  epochs_since_ = 0;
  best_ = worst(larger_is_better_);
}

std::string ModelCheckpoint::state() const { return exact_text({best_, static_cast<double>(epochs_since_)}); }

void ModelCheckpoint::set_state(const std::string& state) {
  const std::vector<double> numbers = parse_exact(state);
  best_ = numbers.at(0);
  epochs_since_ = static_cast<std::int64_t>(numbers.at(1));
}

void ModelCheckpoint::save(const std::string& path) const {
  if (!detail::is_first_rank()) return;
  if (options_.save_weights_only) model().save_weights(path);
  else model().save(path);
}

void ModelCheckpoint::on_epoch_end(std::int64_t epoch, Logs& logs) {
  if (++epochs_since_ < options_.period) return;
  epochs_since_ = 0;
  const std::string path = filled(path_, epoch + 1, logs);
  if (!options_.save_best_only) {
    if (options_.verbose > 0) say("\nEpoch {:05d}: saving model to {}", epoch + 1, path);
    save(path);
    return;
  }
  const auto value = logs.find(options_.monitor);
  if (!value) {
    log_warning("Can save best model only with {} available, skipping.", options_.monitor);
    return;
  }
  if (!is_better(*value, best_, 0, larger_is_better_)) {
    if (options_.verbose > 0)
      say("\nEpoch {:05d}: {} did not improve from {:.5f}", epoch + 1, options_.monitor, best_);
    return;
  }
  if (options_.verbose > 0)
    say("\nEpoch {:05d}: {} improved from {:.5f} to {:.5f}, saving model to {}", epoch + 1, options_.monitor,
        best_, *value, path);
  best_ = *value;
  save(path);
}

ReduceLROnPlateau::ReduceLROnPlateau(ReduceLROnPlateauOptions options)
    : options_(std::move(options)),
      larger_is_better_(maximizes(options_.mode, options_.monitor, "Learning Rate Plateau Reducing")) {
  if (options_.factor >= 1) throw InvalidArgumentError("ReduceLROnPlateau does not support a factor >= 1.0.");
}

void ReduceLROnPlateau::on_train_begin(Logs&) {
  check_lr(model());
  wait_ = cooling_ = 0;
  best_ = worst(larger_is_better_);
}

void ReduceLROnPlateau::on_epoch_end(std::int64_t epoch, Logs& logs) {
  const OptimizerNumber lr = model().optimizer().lr();
  const auto value = logs.find(options_.monitor);
  const std::string available = logs.names();
  logs.set("lr", lr.get());
  if (!value) {
    log_warning(
        "Reduce LR on plateau conditioned on metric `{}` which is not available. Available metrics are: {}",
        options_.monitor, available);
    return;
  }
  if (cooling_ > 0) {
    --cooling_;
    wait_ = 0;
  }
  if (is_better(*value, best_, options_.min_delta, larger_is_better_)) {
    best_ = *value;
    wait_ = 0;
    return;
  }
  if (cooling_ > 0 || ++wait_ < options_.patience || lr.get() <= options_.min_lr) return;
  const double reduced = std::max(lr.get() * options_.factor, options_.min_lr);
  lr.set(reduced);
  if (options_.verbose > 0)
    say("\nEpoch {:05d}: ReduceLROnPlateau reducing learning rate to {:g}.", epoch + 1, reduced);
  cooling_ = options_.cooldown;
  wait_ = 0;
}

std::string ReduceLROnPlateau::state() const {
  return exact_text({best_, static_cast<double>(wait_), static_cast<double>(cooling_)});
}

void ReduceLROnPlateau::set_state(const std::string& state) {
  const std::vector<double> numbers = parse_exact(state);
  best_ = numbers.at(0);
  wait_ = static_cast<std::int64_t>(numbers.at(1));
  cooling_ = static_cast<std::int64_t>(numbers.at(2));
}

LearningRateScheduler::LearningRateScheduler(Schedule schedule, int verbose)
    : schedule_(std::move(schedule)), verbose_(verbose) {}
LearningRateScheduler::LearningRateScheduler(const std::function<double(std::int64_t epoch)>& schedule,
                                             int verbose)
    : LearningRateScheduler([schedule](std::int64_t epoch, double) { return schedule(epoch); }, verbose) {}

void LearningRateScheduler::on_epoch_begin(std::int64_t epoch, Logs&) {
  check_lr(model());
  const OptimizerNumber lr = model().optimizer().lr();
  const double next = schedule_(epoch, lr.get());
  if (!std::isfinite(next))
    throw InvalidArgumentError("The output of the \"schedule\" function should be float. It is {}", next);
  lr.set(next);
  if (verbose_ > 0)
    say("\nEpoch {:05d}: LearningRateScheduler setting learning rate to {}.", epoch + 1, next);
}

void LearningRateScheduler::on_epoch_end(std::int64_t, Logs& logs) {
  logs.set("lr", model().optimizer().lr().get());
}

CSVLogger::CSVLogger(std::string file, std::string separator, bool append)
    : path_(std::move(file)), separator_(std::move(separator)), append_(append) {}

namespace {

// As CSV asks (RFC 4180): a name that holds what separates others stands in quotes, its own are doubled.
std::string quoted(const std::string& name, const std::string& separator) {
  if (name.find(separator) == std::string::npos && name.find_first_of("\"\r\n") == std::string::npos)
    return name;
  std::string text = "\"";
  for (const char letter : name) text += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return text + '"';
}

}  // namespace

void CSVLogger::on_train_begin(Logs&) {
  if (!detail::is_first_rank()) return;
  std::error_code none;
  needs_header_ = !append_ || std::filesystem::file_size(path_, none) == 0 || none;
  keys_.clear();
  file_ = std::shared_ptr<std::FILE>(std::fopen(path_.c_str(), append_ ? "a" : "w"), [](std::FILE* file) {
    if (file != nullptr) std::fclose(file);
  });
  if (!file_) throw NotFoundError("CSVLogger: {} cannot be opened", path_);
}

void CSVLogger::on_epoch_end(std::int64_t epoch, Logs& logs) {
  if (!file_) return;
  if (keys_.empty()) {
    for (const auto& [name, value] : logs.entries()) keys_.push_back(name);
    std::sort(keys_.begin(), keys_.end());
    std::string header = "epoch";
    for (const std::string& key : keys_) header += separator_ + quoted(key, separator_);
    if (needs_header_) fmt::print(file_.get(), "{}\n", header);
  }
  std::string line = std::to_string(epoch);
  for (const std::string& key : keys_) {
    const auto value = logs.find(key);
    line += separator_ + (value ? fmt::format("{}", *value) : "NA");
  }
  fmt::print(file_.get(), "{}\n", line);
  std::fflush(file_.get());
}

void CSVLogger::on_train_end(Logs&) { file_.reset(); }

void TerminateOnNaN::on_batch_end(std::int64_t batch, Logs& logs) {
  const auto loss = logs.find("loss");
  if (!loss || std::isfinite(*loss)) return;
  say("Batch {}: Invalid loss, terminating training", batch);
  model().set_stop_training(true);
}

void LambdaCallback::on_train_begin(Logs& logs) {
  if (options_.on_train_begin) options_.on_train_begin(logs);
}
void LambdaCallback::on_train_end(Logs& logs) {
  if (options_.on_train_end) options_.on_train_end(logs);
}
void LambdaCallback::on_epoch_begin(std::int64_t epoch, Logs& logs) {
  if (options_.on_epoch_begin) options_.on_epoch_begin(epoch, logs);
}
void LambdaCallback::on_epoch_end(std::int64_t epoch, Logs& logs) {
  if (options_.on_epoch_end) options_.on_epoch_end(epoch, logs);
}
void LambdaCallback::on_batch_begin(std::int64_t batch, Logs& logs) {
  if (options_.on_batch_begin) options_.on_batch_begin(batch, logs);
}
void LambdaCallback::on_batch_end(std::int64_t batch, Logs& logs) {
  if (options_.on_batch_end) options_.on_batch_end(batch, logs);
}

}  // namespace kolo::keras
