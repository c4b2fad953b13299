#include <kolo/models/batches.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/log.h>
#include <kolo/models/samples.h>

namespace kolo::models {
namespace {

void check_options(const BatchOptions& options) {
  if (options.batch_size < 1)
    throw InvalidArgumentError("batch size {}; it must be at least 1", options.batch_size);
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks)
    throw InvalidArgumentError("rank {} of {} ranks; ranks are 0 to {}", options.rank, options.ranks,
                               options.ranks - 1);
  if (options.threads < 1)
    throw InvalidArgumentError("{} threads to read samples; at least 1 is needed", options.threads);
}

// The tensor's own memory again where its size fits and nobody else holds it.
void reserve(Tensor& tensor, DType dtype, const Shape& shape) {
  const bool reusable =
      tensor && tensor.dtype() == dtype && tensor.shape() == shape && tensor.buffer().use_count() == 1;
  if (!reusable) tensor = Tensor(dtype, shape);
}

Shape batch_shape(const SampleKind& kind, std::int64_t samples, ImageLayout layout) {
  if (layout == ImageLayout::flat) return {samples, kind.shape.elements()};
  return batch_shape(kind, samples);
}

std::unique_ptr<ReadThreads> read_threads(const SampleKind& kind, const BatchOptions& options) {
  return std::make_unique<ReadThreads>(kind.decoded ? options.threads : 1);
}

}  // namespace

std::string to_json(const BatchPosition& position) {
  return json_text(nlohmann::json{{"epoch", position.epoch},
                                  {"batch", position.batch},
                                  {"global_batch_size", position.global_batch_size}});
}

BatchPosition position_from_json(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    const auto count = [&](const char* key) {
      if (!json.at(key).is_number_integer())
        throw DataLossError("\"{}\" is not a data position: {} is no count", text, key);
      return json.at(key).get<std::int64_t>();
    };
    return {count("epoch"), count("batch"), count("global_batch_size")};
  } catch (const nlohmann::json::exception& error) {
    throw DataLossError("\"{}\" is not a data position: {}", text, error.what());
  }
}

void shuffle_samples(std::uint64_t seed, std::int64_t epoch, std::int64_t samples,
                     std::vector<std::int64_t>& order) {
  order.resize(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  CounterRandom random(seed, RandomPurpose::sample_order, static_cast<std::uint64_t>(epoch));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
}

Batches::Batches(Dataset dataset, const BatchOptions& options)
    : Batches(image_samples(std::move(dataset), options.augmentation), options) {}

Batches::Batches(std::shared_ptr<const SampleSet> samples_set, const BatchOptions& options)
    : samples_(std::move(samples_set)), options_(options) {
  check_options(options_);
  const SampleKind& kind = samples_->kind();
  const std::int64_t samples = samples_->size();
  if (options_.ranks > samples)
    throw InvalidArgumentError("{} ranks for {} samples of {}; a rank needs at least one sample",
                               options_.ranks, samples, kind.name);
  if (const auto shard = samples / options_.ranks; options_.batch_size > shard)
    throw InvalidArgumentError(
        "batch size {} is larger than the shard of {} samples ({} samples of {}, {} rank{}); at most {} is "
        "possible",
        options_.batch_size, shard, samples, kind.name, options_.ranks, options_.ranks == 1 ? "" : "s",
        shard);
  steps_per_epoch_ = samples / global_batch_size();
  samples_shape_ = batch_shape(kind, options_.batch_size, options_.layout);
  labels_shape_ = labels_shape(kind, options_.batch_size);
  threads_ = read_threads(kind, options_);
  position_.global_batch_size = global_batch_size();
}

void Batches::next(Batch& batch) {
  reserve(batch.samples, samples_->kind().dtype, samples_shape_);
  reserve(batch.labels, label_dtype(samples_->kind()), labels_shape_);
  if (order_epoch_ != position_.epoch) {
    shuffle_samples(options_.seed, position_.epoch, samples_->size(), order_);
    order_epoch_ = position_.epoch;
  }
  const auto first = position_.batch * global_batch_size() + options_.rank * options_.batch_size;
  threads_->run(options_.batch_size, [&](std::int64_t i) {
    const std::int64_t sample = order_[static_cast<std::size_t>(first + i)];
    CounterRandom random(options_.seed, RandomPurpose::sample_changes,
                         static_cast<std::uint64_t>(position_.epoch * samples_->size() + sample));
    samples_->read(sample, &random, batch, i);
  });
  if (++position_.batch == steps_per_epoch_) {
    ++position_.epoch;
    position_.batch = 0;
  }
}

void Batches::seek(const BatchPosition& position) {
  std::int64_t taken = 0;
  if (position.epoch < 0 || position.batch < 0 || position.global_batch_size < 1 ||
      __builtin_mul_overflow(position.batch, position.global_batch_size, &taken))
    throw InvalidArgumentError("{} is not a position in the data", to_json(position));
  BatchPosition target{position.epoch, taken / global_batch_size(), global_batch_size()};
  if (position.global_batch_size != global_batch_size() && options_.rank == 0)
    log_info(
        "data position: {} samples of epoch {} were taken in global batches of {}; going on at batch {} of "
        "{} samples",
        taken, position.epoch, position.global_batch_size, target.batch, global_batch_size());
  if (target.batch >= steps_per_epoch_) target = {position.epoch + 1, 0, global_batch_size()};
  position_ = target;
}

EvaluationBatches::EvaluationBatches(Dataset dataset, const BatchOptions& options)
    : EvaluationBatches(image_samples(std::move(dataset)), options) {}

EvaluationBatches::EvaluationBatches(std::shared_ptr<const SampleSet> samples, const BatchOptions& options)
    : samples_(std::move(samples)), options_(options) {
  check_options(options_);
  begin_ = samples_->size() * options_.rank / options_.ranks;
  end_ = samples_->size() * (options_.rank + 1) / options_.ranks;
  next_ = begin_;
  threads_ = read_threads(samples_->kind(), options_);
}

bool EvaluationBatches::next(Batch& batch) {
  const auto samples = std::min(options_.batch_size, end_ - next_);
  if (samples <= 0) return false;
  reserve(batch.samples, samples_->kind().dtype, batch_shape(samples_->kind(), samples, options_.layout));
  reserve(batch.labels, label_dtype(samples_->kind()), labels_shape(samples_->kind(), samples));
  threads_->run(samples, [&](std::int64_t i) { samples_->read(next_ + i, nullptr, batch, i); });
  next_ += samples;
  return true;
}

}  // namespace kolo::models
