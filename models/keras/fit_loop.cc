// Epochs and batches: what fit, evaluate and predict do with arrays.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/runtime/group.h>
#include <kolo/models/batches.h>
#include <kolo/models/keras/progress_internal.h>
#include <kolo/models/keras/trainer_internal.h>

namespace kolo::keras {

void Callback::attach(const Model& model, const CallbackParams& params) {
  model_ = std::make_shared<Model>(model);
  params_ = params;
}

namespace {

using detail::Feed;
using detail::Trainer;

std::vector<Tensor> rows_of(const std::vector<Tensor>& tensors, std::span<const std::int64_t> rows,
                            const std::vector<detail::Slot>* slots) {
  std::vector<Tensor> taken;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    taken.push_back(detail::gathered(tensors[i], rows, slots == nullptr ? DType::f32 : (*slots)[i].dtype));
  return taken;
}

Feed batch_of(const Trainer& trainer, const Feed& all, std::span<const std::int64_t> rows) {
  return {.inputs = rows_of(all.inputs, rows, &trainer.inputs()),
          .targets = rows_of(all.targets, rows, &trainer.targets()),
          .weights = rows_of(all.weights, rows, nullptr),
          .samples = static_cast<std::int64_t>(rows.size())};
}

Feed part_of(const Feed& all, std::int64_t begin, std::int64_t end) {
  const auto rows = [&](const std::vector<Tensor>& tensors) {
    std::vector<Tensor> parts;
    for (const Tensor& tensor : tensors) parts.push_back(tensor.rows(begin, end));
    return parts;
  };
  return {.inputs = rows(all.inputs),
          .targets = rows(all.targets),
          .weights = rows(all.weights),
          .samples = end - begin};
}

std::int64_t class_of(const Tensor& targets, std::int64_t row) {
  const std::int64_t classes = targets.elements() / std::max<std::int64_t>(1, targets.shape().dim(0));
  if (classes == 1) return static_cast<std::int64_t>(detail::number_at(targets, row));
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < classes; ++i)
    if (detail::number_at(targets, row * classes + i) > detail::number_at(targets, row * classes + best))
      best = i;
  return best;
}

Tensor weights_by_class(const Feed& all, const std::map<std::int64_t, double>& by_class) {
  if (all.targets.size() != 1)
    throw InvalidArgumentError("`class_weight` is for models of one output; this one has {}",
                               all.targets.size());
  if (all.targets[0].shape().rank() > 2)
    throw InvalidArgumentError("`class_weight` not supported for 3+ dimensional targets.");
  Tensor weights(DType::f32, {all.samples});
  std::set<std::int64_t> missing;
  for (std::int64_t i = 0; i < all.samples; ++i) {
    const auto found = by_class.find(class_of(all.targets[0], i));
    if (found == by_class.end()) missing.insert(class_of(all.targets[0], i));
    else weights.data<float>()[i] = static_cast<float>(found->second);
  }
  if (missing.empty()) return weights;
  throw InvalidArgumentError(
      "`class_weight` must contain all classes in the data. The classes {{{}}} exist in the data but not in "
      "`class_weight`.",
      fmt::join(missing, ", "));
}

// The order of an epoch's samples.
std::vector<std::int64_t> order_of(std::uint64_t seed, std::int64_t epoch, std::int64_t samples,
                                   const FitOptions& options) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  if (options.shuffle.of_samples) models::shuffle_samples(seed, epoch, samples, order);
  if (!options.shuffle.of_batches) return order;
  const std::int64_t size = options.batch_size;
  std::vector<std::int64_t> batches;
  models::shuffle_samples(seed, epoch, samples / size, batches);
  for (std::size_t b = 0; b < batches.size(); ++b)
    std::iota(order.begin() + static_cast<std::int64_t>(b) * size,
              order.begin() + static_cast<std::int64_t>(b + 1) * size, batches[b] * size);
  return order;
}

// Σ value · size ÷ Σ size.
class Means {
 public:
  explicit Means(std::size_t values) : sums_(values) {}
  void add(const std::vector<double>& values, std::int64_t size) {
    for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += values[i] * static_cast<double>(size);
    size_ += size;
  }
  std::vector<double> means() const {
    std::vector<double> means = sums_;
    for (double& mean : means) mean /= static_cast<double>(std::max<std::int64_t>(size_, 1));
    return means;
  }
  std::int64_t size() const { return size_; }

 private:
  std::vector<double> sums_;
  std::int64_t size_ = 0;
};

Logs named(const std::vector<std::string>& names, const std::vector<double>& values,
           const char* prefix = "") {
  Logs logs;
  for (std::size_t i = 0; i < names.size(); ++i) logs.set(prefix + names[i], values[i]);
  return logs;
}

std::vector<double> evaluated(Trainer& trainer, const Feed& all, std::int64_t batch_size, int verbose) {
  Means means(trainer.metrics_names().size());
  detail::ProgressLine line(all.samples, verbose);
  for (std::int64_t first = 0; first < all.samples; first += batch_size) {
    const std::int64_t end = std::min(all.samples, first + batch_size);
    means.add(trainer.test(part_of(all, first, end)), end - first);
    line.update(end, {});
  }
  if (verbose == 1) line.finish(all.samples, {});
  return means.means();
}

void check_batch_size(std::int64_t batch_size) {
  if (batch_size < 1) throw InvalidArgumentError("batch_size is {}; it must be at least 1", batch_size);
}

// One call of fit.
class Fit {
 public:
  Fit(const Model& model, const Arrays& x, const Arrays& y, const FitOptions& options)
      : model_(model), options_(options), trainer_(model.model().trainer()), rank_(world_group().rank()) {
    check_batch_size(options.batch_size);
    if (options.validation_split < 0 || options.validation_split >= 1)
      throw InvalidArgumentError("validation_split is {}; it must lie in [0, 1)", options.validation_split);
    train_ = trainer_.checked(x, y, options.sample_weight);
    if (!options.class_weight.empty() && !options.sample_weight.empty())
      log_warning("fit got both `sample_weight` and `class_weight`; class_weight is ignored");
    else if (!options.class_weight.empty()) train_.weights = {weights_by_class(train_, options.class_weight)};
    take_validation();
    check_ranks();
  }

  History run() {
    start();
    attach();
    Logs logs;
    for (const AnyCallback& callback : options_.callbacks) callback->on_train_begin(logs);
    for (epoch_ = options_.initial_epoch; epoch_ < options_.epochs && !stopped(); ++epoch_) run_epoch();
    for (const AnyCallback& callback : options_.callbacks) callback->on_train_end(logs);
    return std::move(history_);
  }

 private:
  void start() {
    model_.set_stop_training(false);
    install_stop_signals();
    trainer_.warn_of_changed_trainable();
  }

  bool stopped() const { return model_.stop_training() || stop_signal_received(); }
  bool prints() const { return rank_ == 0 && options_.verbose > 0; }

  void take_validation() {
    if (options_.validation_data) {
      const Samples& samples = *options_.validation_data;
      validation_ = trainer_.checked(samples.x, samples.y, samples.weights);
    } else if (options_.validation_split > 0) {
      const auto kept =
          static_cast<std::int64_t>(static_cast<double>(train_.samples) * (1 - options_.validation_split));
      validation_ = part_of(train_, kept, train_.samples);
      train_ = part_of(train_, 0, kept);
    }
  }

  std::int64_t steps() const { return (train_.samples + options_.batch_size - 1) / options_.batch_size; }

  // A rank with more steps than another would wait for it forever.
  void check_ranks() const {
    if (!trainer_.options().optimizer.distributed_options() || world_group().size() == 1) return;
    const auto all = world_group().allgather(std::to_string(steps()));
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all[0])
        throw FailedPreconditionError(
            "Ranks disagree on the steps of an epoch: {} on rank 0 but {} on rank {}", all[0], all[rank],
            rank);
  }

  void attach() {
    CallbackParams params{.batch_size = options_.batch_size,
                          .epochs = options_.epochs,
                          .steps = steps(),
                          .samples = train_.samples,
                          .validation_samples = validation_ ? validation_->samples : 0,
                          .verbose = options_.verbose,
                          .do_validation = validation_.has_value(),
                          .metrics = trainer_.metrics_names()};
    if (validation_)
      for (const std::string& name : trainer_.metrics_names()) params.metrics.push_back("val_" + name);
    for (const AnyCallback& callback : options_.callbacks) callback->attach(model_, params);
    if (!prints()) return;
    if (validation_)
      fmt::print("Train on {} samples, validate on {} samples\n", train_.samples, validation_->samples);
    else fmt::print("Train on {} samples\n", train_.samples);
  }

  void run_epoch() {
    Logs begin;
    if (prints()) fmt::print("Epoch {}/{}\n", epoch_ + 1, options_.epochs);
    for (const AnyCallback& callback : options_.callbacks) callback->on_epoch_begin(epoch_, begin);
    const std::uint64_t seed = model_.model().workspace().options().seed + static_cast<std::uint64_t>(rank_);
    const std::vector<std::int64_t> order = order_of(seed, epoch_, train_.samples, options_);
    Means means(trainer_.metrics_names().size());
    detail::ProgressLine line(train_.samples, prints() ? options_.verbose : 0);
    for (std::int64_t first = 0, batch = 0; first < train_.samples; first += options_.batch_size, ++batch) {
      const std::int64_t size = std::min(options_.batch_size, train_.samples - first);
      run_batch(batch, {order.data() + first, static_cast<std::size_t>(size)}, means);
      line.update(means.size(), named(trainer_.metrics_names(), means.means()));
      if (stopped()) break;
    }
    Logs logs = named(trainer_.metrics_names(), means.means());
    const bool whole = means.size() == train_.samples && !stop_signal_received();
    if (validation_ && whole) {
      const auto values = evaluated(trainer_, *validation_, options_.batch_size, 0);
      const Logs added = named(trainer_.metrics_names(), values, "val_");
      for (const auto& [name, value] : added.entries()) logs.set(name, value);
    }
    for (const AnyCallback& callback : options_.callbacks) callback->on_epoch_end(epoch_, logs);
    note(logs);
    line.finish(means.size(), shown(logs));
  }

  void run_batch(std::int64_t batch, std::span<const std::int64_t> rows, Means& means) {
    Logs logs(
        Logs::Entries{{"batch", static_cast<double>(batch)}, {"size", static_cast<double>(rows.size())}});
    for (const AnyCallback& callback : options_.callbacks) callback->on_batch_begin(batch, logs);
    const std::vector<double> values = trainer_.train(batch_of(trainer_, train_, rows));
    means.add(values, static_cast<std::int64_t>(rows.size()));
    const Logs of_batch = named(trainer_.metrics_names(), values);
    for (const auto& [name, value] : of_batch.entries()) logs.set(name, value);
    for (const AnyCallback& callback : options_.callbacks) callback->on_batch_end(batch, logs);
  }

  // The line shows losses and metrics, not what callbacks add.
  Logs shown(const Logs& logs) const {
    Logs some;
    for (const char* prefix : {"", "val_"})
      for (const std::string& name : trainer_.metrics_names())
        if (const auto value = logs.find(prefix + name)) some.set(prefix + name, *value);
    return some;
  }

  void note(const Logs& logs) {
    history_.epoch.push_back(epoch_);
    for (const auto& entry : logs.entries()) {
      auto& all = history_.history;
      auto found =
          std::find_if(all.begin(), all.end(), [&](const auto& known) { return known.first == entry.first; });
      if (found == all.end()) found = all.insert(all.end(), {entry.first, {}});
      found->second.push_back(entry.second);
    }
  }

  const Model& model_;
  const FitOptions& options_;
  Trainer& trainer_;
  int rank_;
  Feed train_;
  std::optional<Feed> validation_;
  std::int64_t epoch_ = 0;
  History history_;
};

}  // namespace

History Model::fit(const Arrays& x, const Arrays& y, const FitOptions& options) const {
  model().build_from(x);
  return Fit(*this, x, y, options).run();
}

std::vector<double> Model::evaluate(const Arrays& x, const Arrays& y, const EvaluateOptions& options) const {
  check_batch_size(options.batch_size);
  model().build_from(x);
  Trainer& trainer = model().trainer();
  const int verbose = world_group().rank() == 0 ? options.verbose : 0;
  return evaluated(trainer, trainer.checked(x, y, options.sample_weight), options.batch_size, verbose);
}

std::vector<double> Model::evaluate(const Samples& samples, const EvaluateOptions& options) const {
  EvaluateOptions with_weights = options;
  if (with_weights.sample_weight.empty()) with_weights.sample_weight = samples.weights;
  return evaluate(samples.x, samples.y, with_weights);
}

std::vector<Tensor> Model::predict(const Arrays& x, const PredictOptions& options) const {
  check_batch_size(options.batch_size);
  model().build_from(x);
  detail::Predictor& predictor = model().predictor();
  const std::vector<Tensor> inputs = detail::standardized(x, predictor.inputs(), "input");
  const std::int64_t samples = detail::samples_of(inputs, "input arrays (x)");
  detail::ProgressLine line(samples, world_group().rank() == 0 ? options.verbose : 0);
  std::vector<Tensor> all;
  for (std::int64_t first = 0; first < samples; first += options.batch_size) {
    const std::int64_t end = std::min(samples, first + options.batch_size);
    std::vector<Tensor> some;
    for (const Tensor& input : inputs) some.push_back(input.rows(first, end));
    const std::vector<Tensor> results = predictor.predict(some);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (all.size() <= i) all.emplace_back(results[i].dtype(), results[i].shape().with_dim(0, samples));
      all[i].rows(first, end).copy_from(results[i]);
    }
    line.update(end, {});
  }
  if (options.verbose == 1) line.finish(samples, {});
  return all;
}

void Model::set_stop_training(bool stop) const { model().set_stop_training(stop); }
bool Model::stop_training() const { return model().stop_training(); }

Tensor Sequential::predict_classes(const Arrays& x, const PredictOptions& options) const {
  const Tensor p = predict(x, options).at(0);
  const std::int64_t rows = p.shape().dim(0), classes = rows == 0 ? 1 : p.elements() / rows;
  Tensor chosen(DType::i64, {rows});
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* const row = p.data<float>() + i * classes;
    chosen.data<std::int64_t>()[i] = classes == 1 ? row[0] > .5F : std::max_element(row, row + classes) - row;
  }
  return chosen;
}

}  // namespace kolo::keras
