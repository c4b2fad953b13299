// Epochs and batches: what fit does.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/runtime/group.h>
#include <kolo/models/keras/callback_list_internal.h>
#include <kolo/models/keras/callbacks.h>
#include <kolo/models/keras/checkpoint_callback.h>
#include <kolo/models/keras/distributed_callbacks.h>
#include <kolo/models/keras/fit_progress_internal.h>
#include <kolo/models/keras/rank_agreement_internal.h>
#include <kolo/models/keras/training_data_internal.h>

namespace kolo::keras {

namespace {

using detail::Feed;
using detail::RankAgreement;
using detail::Trainer;
using detail::TrainingData;

void check_arrays(const FitOptions& options) {
  detail::check_batch_size(options.batch_size);
  if (options.steps_per_epoch)
    throw InvalidArgumentError(
        "If steps_per_epoch is set, the `batch_size` must be None. Samples in memory are trained on once an "
        "epoch, batch by batch; steps_per_epoch is for a source");
  if (options.global_batch_size < 0 ||
      (options.global_batch_size > 0 && options.global_batch_size < world_group().size()))
    throw InvalidArgumentError("global_batch_size {} is less than {} rank{}", options.global_batch_size,
                               world_group().size(), world_group().size() == 1 ? "" : "s");
  if (options.validation_split < 0 || options.validation_split >= 1)
    throw InvalidArgumentError("validation_split is {}; it must lie in [0, 1)", options.validation_split);
}

void check_source(const FitOptions& options) {
  if (!options.steps_per_epoch)
    throw InvalidArgumentError(
        "When training on a source you should specify the `steps_per_epoch` argument: it has no end of its "
        "own");
  if (*options.steps_per_epoch < 1)
    throw InvalidArgumentError("steps_per_epoch is {}; it must be at least 1", *options.steps_per_epoch);
  for (const auto& [given, name] :
       {std::pair(options.validation_split != 0, "validation_split"),
        std::pair(!options.sample_weight.empty(), "sample_weight"),
        std::pair(!options.class_weight.empty(), "class_weight"), std::pair(options.shard, "shard"),
        std::pair(options.global_batch_size != 0, "global_batch_size")})
    if (given)
      throw InvalidArgumentError("`{}` is for samples in memory; it does not go with a source", name);
}

void check_validation(const FitOptions& options) {
  if (options.validation_source != nullptr && !options.validation_steps)
    throw InvalidArgumentError(
        "Must specify `validation_steps` to perform validation when doing step-wise training.");
  if (options.validation_source == nullptr && options.validation_steps)
    throw InvalidArgumentError(
        "Can only use `validation_steps` when doing step-wise training, which is validated on a source.");
}

// One call of fit.
class Fit {
 public:
  Fit(const Model& model, const Arrays& x, const Arrays& y, const FitOptions& options)
      : Fit(model, options, false) {
    check_arrays(options);
    Feed train = trainer_.checked(x, y, options.sample_weight);
    if (!options.class_weight.empty() && !options.sample_weight.empty())
      log_warning("fit got both `sample_weight` and `class_weight`; class_weight is ignored");
    else if (!options.class_weight.empty())
      train.weights = {detail::weights_by_class(train, options.class_weight)};
    take_validation(&train);
    const std::uint64_t seed = model_.model().workspace().options().seed;
    const std::int64_t samples = train.samples;
    data_ = detail::read_ahead(
        trainer_,
        detail::array_data(trainer_, std::move(train),
                           {.seed = shares() ? seed : seed + static_cast<std::uint64_t>(group_.rank()),
                            .batch_size = options.batch_size,
                            .shuffle = options.shuffle,
                            .shared = shares(),
                            .global_batch_size = options.global_batch_size,
                            .epoch_end = options.epoch_end,
                            .rank = group_.rank(),
                            .ranks = group_.size()}));
    compare_ranks(shares(), seed, samples);
  }

  Fit(const Model& model, Source& source, const FitOptions& options) : Fit(model, options, true) {
    check_source(options);
    take_validation(nullptr);
    data_ = detail::read_ahead(
        trainer_, detail::source_data(trainer_, source, *options.steps_per_epoch, options.initial_epoch));
    compare_ranks(false, 0, 0);
  }

  ~Fit() { model_.model().set_fit_progress(nullptr); }
  Fit(const Fit&) = delete;
  Fit& operator=(const Fit&) = delete;

  History run() {
    try {
      train();
    } catch (const std::exception& error) {
      agreement_.leave(StepFlag::failed, error.what());
      throw;
    }
    History history;  // without a hold on the model, as callbacks have one
    history.epoch = std::move(callbacks_.history().epoch);
    history.history = std::move(callbacks_.history().history);
    return history;
  }

 private:
  Fit(const Model& model, const FitOptions& options, bool on_source)
      : model_(model),
        options_(options),
        trainer_(model.model().trainer()),
        group_(world_group()),
        agreement_(trainer_),
        callbacks_(options.callbacks, on_source),
        progress_{.loggers = callbacks_.loggers(), .callbacks = options.callbacks} {
    check_validation(options);
    if (model_.model().fit_progress() != nullptr)
      throw FailedPreconditionError(
          "fit was called while a fit of the same model is under way; a callback may evaluate and predict, "
          "or call "
          "train_on_batch");
    model_.model().set_fit_progress(&progress_);
  }

  void take_validation(Feed* train) {
    if (options_.validation_data) {
      const Samples& samples = *options_.validation_data;
      validation_ = trainer_.checked(samples.x, samples.y, samples.weights);
    } else if (train != nullptr && options_.validation_split > 0) {
      const auto kept =
          static_cast<std::int64_t>(static_cast<double>(train->samples) * (1 - options_.validation_split));
      validation_ = detail::part_of(*train, kept, train->samples);
      *train = detail::part_of(*train, 0, kept);
    }
  }

  // A rank with more steps than another would wait for it forever.
  void compare_ranks(bool shared, std::uint64_t seed, std::int64_t samples) const {
    if (agreement_.is_alone() && !shared) return;
    std::vector<std::pair<std::string, std::string>> texts;
    if (shared) texts = {{"seed", std::to_string(seed)}, {"samples", std::to_string(samples)}};
    texts.emplace_back("steps of an epoch", std::to_string(data_->steps()));
    texts.emplace_back("epochs", fmt::format("{} to {}", options_.initial_epoch, options_.epochs));
    RankAgreement::compare(texts);
  }

  void train() {
    model_.set_stop_training(false);
    install_stop_signals();
    trainer_.warn_of_changed_trainable();
    attach();
    progress_.epoch = options_.initial_epoch;
    callbacks_.on_train_begin();
    if (options_.resume) resume();
    while (progress_.epoch < options_.epochs && !over_) run_epoch();
    callbacks_.on_train_end();
  }

  void resume() {
    CheckpointCallback* const checkpoints = checkpoint_callback();
    if (checkpoints == nullptr)
      throw InvalidArgumentError("resume: there is no CheckpointCallback among the callbacks");
    checkpoints->restore();
    if (!progress_.place) progress_.place = data_->place_of(progress_.batch);
    // Of samples that each rank has alone one rank's may have changed: all keep in step.
    if (agreement_.any(data_->begins_anew(progress_.epoch, *progress_.place, group_.rank() == 0))) {
      begin_epoch(progress_.epoch);
      for (const auto& logger : progress_.loggers) logger->forget();
    }
    // A callback had ended the training, on one rank perhaps: it alone has that back.
    over_ = agreement_.any(model_.stop_training());
    if (over_ && prints()) log_info("resume: the training was stopped behind epoch {}", progress_.epoch);
  }

  CheckpointCallback* checkpoint_callback() const {
    for (const AnyCallback& callback : options_.callbacks)
      if (auto* const found = dynamic_cast<CheckpointCallback*>(&*callback)) return found;
    return nullptr;
  }

  bool wants_to_stop() const { return model_.stop_training() || stop_signal_received(); }
  bool prints() const { return group_.rank() == 0 && options_.verbose > 0; }
  bool shares() const { return options_.shard || options_.global_batch_size > 0; }
  bool validates() const { return validation_ || options_.validation_source != nullptr; }
  bool on_source() const { return data_->samples() == 0; }

  void attach() {
    CallbackParams params{.batch_size = batch_of_rank(),
                          .epochs = options_.epochs,
                          .steps = data_->steps(),
                          .samples = data_->samples(),
                          .validation_samples = validation_ ? validation_->samples : 0,
                          .verbose = options_.verbose,
                          .do_validation = validates(),
                          .unequal_ranks = data_->has_unequal_parts(),
                          .metrics = trainer_.metrics_names()};
    if (validates())
      for (const std::string& name : trainer_.metrics_names()) params.metrics.push_back("val_" + name);
    callbacks_.attach(model_, params);
    warn_of_order();
    if (!prints() || on_source()) return;
    if (validation_)
      fmt::print("Train on {} samples, validate on {} samples\n", data_->samples(), validation_->samples);
    else fmt::print("Train on {} samples\n", data_->samples());
  }

  // A rank that decides by its own metrics may decide otherwise than the others.
  void warn_of_order() const {
    if (group_.size() == 1 || group_.rank() != 0) return;
    const char* decides = nullptr;
    for (const AnyCallback& callback : options_.callbacks) {
      const Callback* const one = &*callback;
      if (dynamic_cast<const EarlyStopping*>(one) != nullptr) decides = "EarlyStopping";
      if (dynamic_cast<const ReduceLROnPlateau*>(one) != nullptr) decides = "ReduceLROnPlateau";
      if (decides != nullptr && dynamic_cast<const MetricAverageCallback*>(one) != nullptr)
        log_warning(
            "MetricAverageCallback stands behind {}, which sees each rank's own metrics; put it first",
            decides);
    }
  }

  void run_epoch() {
    const std::int64_t epoch = progress_.epoch;
    callbacks_.on_epoch_begin(epoch);
    data_->seek(epoch, *progress_.place);
    while (!data_->is_over(*progress_.place) && !over_ && run_batch()) {
    }
    Logs logs;
    const bool whole = data_->is_over(*progress_.place);
    if (!agreement_.any(stop_signal_received()) && whole && !data_ended_) validate(logs);
    if (whole) begin_epoch(epoch + 1);
    else if (CheckpointCallback* const checkpoints = checkpoint_callback()) checkpoints->save();
    callbacks_.on_epoch_end(epoch, logs);
    over_ |= agreement_.any(wants_to_stop());
  }

  void begin_epoch(std::int64_t epoch) {
    progress_.epoch = epoch;
    progress_.batch = 0;
    progress_.place = detail::DataPlace{.of_source = progress_.place->of_source};
  }

  // False where there is no batch any more.
  bool run_batch() {
    std::optional<Feed> feed = data_->next();
    if (!feed) {
      agreement_.leave(StepFlag::end_of_data, "");
      return end_data();
    }
    Logs logs(Logs::Entries{{"batch", static_cast<double>(progress_.batch)},
                            {"size", static_cast<double>(feed->counted())}});
    callbacks_.on_batch_begin(progress_.batch, logs);
    if (wants_to_stop()) agreement_.wish_to_stop();
    agreement_.compare_weights(progress_.epoch * data_->steps() + progress_.batch + 1);
    std::vector<double> values;
    try {
      values = trainer_.train(*feed);
    } catch (const OutOfRangeError&) {
      if (!agreement_.data_ended()) throw;
      return end_data();
    }
    over_ = agreement_.is_alone() ? false : agreement_.stops();
    add(logs, values, "");
    const std::int64_t batch = progress_.batch++;
    progress_.place = feed->end;
    callbacks_.on_batch_end(batch, logs);
    if (agreement_.is_alone()) over_ = wants_to_stop();
    return true;
  }

  bool end_data() {
    log_warning(
        "Your dataset ran out of data; interrupting training. Make sure that it can generate at least "
        "`steps_per_epoch * epochs` batches ({}).",
        data_->steps() * (options_.epochs - options_.initial_epoch));
    over_ = data_ended_ = true;
    return false;
  }

  void validate(Logs& logs) {
    if (!validates()) return;
    const bool shared = shares() && group_.size() > 1;
    const auto values =
        validation_ ? detail::evaluated(trainer_, *validation_, batch_of_rank(), 0,
                                        shared ? group_.rank() : 0, shared ? group_.size() : 1)
                    : detail::evaluated(trainer_, *options_.validation_source, options_.validation_steps, 0);
    add(logs, values, "val_");
  }

  // The most samples of a batch on this rank.
  std::int64_t batch_of_rank() const {
    const std::int64_t global = options_.global_batch_size, ranks = group_.size();
    return global > 0 ? (global + ranks - 1) / ranks : options_.batch_size;
  }

  void add(Logs& logs, const std::vector<double>& values, const char* prefix) const {
    for (std::size_t i = 0; i < values.size(); ++i) logs.set(prefix + trainer_.metrics_names()[i], values[i]);
  }

  const Model& model_;
  const FitOptions& options_;
  Trainer& trainer_;
  Group& group_;
  RankAgreement agreement_;
  detail::CallbackList callbacks_;
  detail::FitProgress progress_;
  std::unique_ptr<TrainingData> data_;
  std::optional<Feed> validation_;
  bool over_ = false, data_ended_ = false;
};

}  // namespace

History Model::fit(const Arrays& x, const Arrays& y, const FitOptions& options) const {
  model().build_from(x);
  return Fit(*this, x, y, options).run();
}

History Model::fit(Source& source, const FitOptions& options) const {
  return Fit(*this, source, options).run();
}

History Model::fit(models::BatchSource& batches, const FitOptions& options) const {
  BatchesOf source(batches);
  return fit(source, options);
}

void Model::set_stop_training(bool stop) const { model().set_stop_training(stop); }
bool Model::stop_training() const { return model().stop_training(); }

}  // namespace kolo::keras
