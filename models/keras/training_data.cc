#include <kolo/models/keras/training_data_internal.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/feed_memory.h>
#include <kolo/models/batches.h>
#include <kolo/models/read_ahead.h>

namespace kolo::keras::detail {
namespace {

// What a step takes in the place of tensor i; without slots they are weights.
DType type_of(const std::vector<Slot>* slots, std::size_t i) {
  return slots == nullptr ? DType::f32 : (*slots)[i].dtype;
}

std::vector<Tensor> rows_of(const std::vector<Tensor>& tensors, std::span<const std::int64_t> rows,
                            const std::vector<Slot>* slots, Allocator& memory) {
  std::vector<Tensor> taken;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    taken.push_back(gathered(tensors[i], rows, type_of(slots, i), memory));
  return taken;
}

std::int64_t class_of(const Tensor& targets, std::int64_t row) {
  const std::int64_t classes = targets.elements() / std::max<std::int64_t>(1, targets.shape().dim(0));
  if (classes == 1) return static_cast<std::int64_t>(number_at(targets, row));
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < classes; ++i)
    if (number_at(targets, row * classes + i) > number_at(targets, row * classes + best)) best = i;
  return best;
}

class ArrayData final : public TrainingData {
 public:
  ArrayData(const Trainer& trainer, Feed samples, const BatchOrder& order)
      : trainer_(trainer),
        memory_(feed_memory(trainer.session())),
        all_(std::move(samples)),
        order_(order),
        shares_(shares_of(order, all_.samples)) {
    if (order_.shared && steps() == 0 && order_.global_batch_size > 0)
      throw InvalidArgumentError("global_batch_size: {} samples are fewer than one batch of {}", all_.samples,
                                 order_.global_batch_size);
    if (order_.shared && steps() == 0)
      throw InvalidArgumentError("shard: {} samples are fewer than one batch of {} on each of {} ranks",
                                 all_.samples, order_.batch_size, order_.ranks);
  }

  std::int64_t steps() const override { return shares_.steps_per_epoch(); }
  std::int64_t samples() const override { return shares_.own_samples(); }
  bool has_unequal_parts() const override { return !shares_.are_equal(); }
  bool is_over(const DataPlace& place) const override { return shares_.is_over(place.taken); }
  DataPlace place_of(std::int64_t batch) const override {
    return {.taken = std::min(batch * shares_.step_size, all_.samples), .samples = all_.samples};
  }
  bool begins_anew(std::int64_t epoch, const DataPlace& place, bool log) const override {
    models::BatchPosition position{.epoch = epoch, .sample = place.taken};
    if (place.samples > 0) position.samples = place.samples;
    return models::in_epoch_of(all_.samples, position, log).sample != place.taken;
  }
  void seek(std::int64_t epoch, const DataPlace& place) override {
    order_batch_ = place.order_batch > 0 ? place.order_batch : shares_.step_size;
    draw_order(epoch);
    taken_ = place.taken;
  }
  std::optional<Feed> next() override {
    const models::StepShares::Part own = shares_.part(taken_, 0);
    const std::int64_t size = own.computed.size();
    const std::span<const std::int64_t> rows(rows_.data() + own.computed.begin,
                                             static_cast<std::size_t>(size));
    taken_ = own.pass_end;
    return Feed{.inputs = rows_of(all_.inputs, rows, &trainer_.inputs(), memory_),
                .targets = rows_of(all_.targets, rows, &trainer_.targets(), memory_),
                .weights = rows_of(all_.weights, rows, nullptr, memory_),
                .samples = size,
                .share = own.weight,
                .end = {.taken = taken_,
                        .order_batch = order_.shuffle.of_batches ? order_batch_ : 0,
                        .samples = all_.samples}};
  }

 private:
  static models::StepShares shares_of(const BatchOrder& order, std::int64_t samples) {
    if (!order.shared)
      return {.samples = samples, .step_size = order.batch_size, .epoch_end = models::EpochEnd::fill};
    const std::int64_t of_ranks = order.batch_size * order.ranks;
    return {.samples = samples,
            .step_size = order.global_batch_size > 0 ? order.global_batch_size : of_ranks,
            .rank = order.rank,
            .ranks = order.ranks,
            .epoch_end = order.epoch_end};
  }

  void draw_order(std::int64_t epoch) {
    rows_.resize(static_cast<std::size_t>(all_.samples));
    std::iota(rows_.begin(), rows_.end(), 0);
    if (order_.shuffle.of_samples) models::shuffle_samples(order_.seed, epoch, all_.samples, rows_);
    if (!order_.shuffle.of_batches) return;
    const std::int64_t size = order_batch_;
    std::vector<std::int64_t> batches;
    models::shuffle_samples(order_.seed, epoch, all_.samples / size, batches);
    for (std::size_t b = 0; b < batches.size(); ++b)
      std::iota(rows_.begin() + static_cast<std::int64_t>(b) * size,
                rows_.begin() + static_cast<std::int64_t>(b + 1) * size, batches[b] * size);
  }

  const Trainer& trainer_;
  Allocator& memory_;
  Feed all_;
  BatchOrder order_;
  models::StepShares shares_;
  std::vector<std::int64_t> rows_;  // in the order of the epoch
  std::int64_t order_batch_ = 0;
  std::int64_t taken_ = 0;
};

class SourceData final : public TrainingData {
 public:
  SourceData(const Trainer& trainer, Source& source, std::int64_t steps, std::int64_t first_epoch)
      : trainer_(trainer),
        memory_(feed_memory(trainer.session())),
        source_(source),
        steps_(steps),
        first_epoch_(first_epoch) {}

  std::int64_t steps() const override { return steps_; }
  std::int64_t samples() const override { return 0; }
  bool is_over(const DataPlace& place) const override { return place.taken >= steps_; }
  DataPlace place_of(std::int64_t batch) const override { return {.taken = batch}; }
  void seek(std::int64_t epoch, const DataPlace& place) override {
    const std::int64_t to = (epoch - first_epoch_) * steps_ + place.taken;
    if (taken_ < to && !place.of_source.empty()) {
      source_.seek(place.of_source);
      taken_ = to;
    }
    for (Samples passed; taken_ < to; ++taken_)
      if (!source_.next(passed)) return;
  }
  std::optional<Feed> next() override {
    Samples batch;
    if (!source_.next(batch)) return {};
    ++taken_;
    Feed feed = trainer_.checked(batch.x, batch.y, batch.weights);
    bring(feed.inputs, &trainer_.inputs());
    bring(feed.targets, &trainer_.targets());
    bring(feed.weights, nullptr);
    feed.end = {.taken = (taken_ - 1) % steps_ + 1, .of_source = source_.position()};
    return feed;
  }

 private:
  // Into the memory that a GPU copies from. Elsewhere a step takes them where they are.
  void bring(std::vector<Tensor>& tensors, const std::vector<Slot>* slots) {
    if (&memory_ == &cpu_allocator()) return;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      tensors[i] = copied(tensors[i], type_of(slots, i), memory_);
  }

  const Trainer& trainer_;
  Allocator& memory_;
  Source& source_;
  std::int64_t steps_, first_epoch_;
  std::int64_t taken_ = 0;
};

class ReadAheadData final : public TrainingData {
 public:
  ReadAheadData(const Trainer& trainer, std::unique_ptr<TrainingData> data)
      : trainer_(trainer),
        sender_(trainer.session()),
        data_(std::move(data)),
        ahead_(kDepth, [this](Feed& feed) { return read(feed); }) {}

  std::int64_t steps() const override { return data_->steps(); }
  std::int64_t samples() const override { return data_->samples(); }
  bool has_unequal_parts() const override { return data_->has_unequal_parts(); }
  bool is_over(const DataPlace& place) const override { return data_->is_over(place); }
  DataPlace place_of(std::int64_t batch) const override { return data_->place_of(batch); }
  bool begins_anew(std::int64_t epoch, const DataPlace& place, bool log) const override {
    return data_->begins_anew(epoch, place, log);
  }
  void seek(std::int64_t epoch, const DataPlace& place) override {
    ahead_.restart([&] {
      data_->seek(epoch, place);
      over_ = data_->is_over(place);
    });
  }
  std::optional<Feed> next() override {
    Feed feed;
    if (!ahead_.next([&](Feed& ready) { feed = std::move(ready); })) return {};
    return feed;
  }

 private:
  static constexpr int kDepth = 2;

  // Not beyond the epoch: the next one may never come.
  bool read(Feed& feed) {
    if (over_) return false;
    std::optional<Feed> found = data_->next();
    if (!found) return false;
    over_ = data_->is_over(found->end);
    feed = std::move(*found);
    send(feed.inputs, &trainer_.inputs());
    send(feed.targets, &trainer_.targets());
    if (feed.share == 1) send(feed.weights, nullptr);  // others are multiplied by it before the step
    return true;
  }
  void send(std::vector<Tensor>& tensors, const std::vector<Slot>* slots) {
    if (!sender_.is_needed()) return;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      tensors[i] = sender_.sent(cast_to(tensors[i], type_of(slots, i)));
  }

  const Trainer& trainer_;
  FeedSender sender_;  // the input thread's
  const std::unique_ptr<TrainingData> data_;
  bool over_ = true;  // no batch of the epoch is left; the input thread's, as data_ is
  models::ReadAhead<Feed> ahead_;
};

}  // namespace

std::unique_ptr<TrainingData> read_ahead(const Trainer& trainer, std::unique_ptr<TrainingData> data) {
  return std::make_unique<ReadAheadData>(trainer, std::move(data));
}

void Means::add(const std::vector<double>& values, std::int64_t samples) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i] * static_cast<double>(samples);
  size += samples;
}

std::vector<double> Means::means() const {
  std::vector<double> means = sums;
  for (double& mean : means) mean /= static_cast<double>(std::max<std::int64_t>(size, 1));
  return means;
}

std::unique_ptr<TrainingData> array_data(const Trainer& trainer, Feed samples, const BatchOrder& order) {
  return std::make_unique<ArrayData>(trainer, std::move(samples), order);
}

std::unique_ptr<TrainingData> source_data(const Trainer& trainer, Source& source, std::int64_t steps,
                                          std::int64_t first_epoch) {
  return std::make_unique<SourceData>(trainer, source, steps, first_epoch);
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

void check_batch_size(std::int64_t batch_size) {
  if (batch_size < 1) throw InvalidArgumentError("batch_size is {}; it must be at least 1", batch_size);
}

}  // namespace kolo::keras::detail
