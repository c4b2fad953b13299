#include <kolo/models/batches.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include <kolo/core/base/count_of.h>
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
  if (options.passes < 1)
    throw InvalidArgumentError("{} passes for a step; at least 1 is needed", options.passes);
  if (options.global_batch_size < 0 ||
      (options.global_batch_size > 0 && options.global_batch_size < options.ranks))
    throw InvalidArgumentError("global batch size {} is less than {} rank{}", options.global_batch_size,
                               options.ranks, options.ranks == 1 ? "" : "s");
}

StepShares step_shares(const BatchOptions& options, std::int64_t samples) {
  const std::int64_t of_ranks = options.batch_size * options.ranks * options.passes;
  return {.samples = samples,
          .step_size = options.global_batch_size > 0 ? options.global_batch_size : of_ranks,
          .passes = options.passes,
          .rank = options.rank,
          .ranks = options.ranks,
          .epoch_end = options.epoch_end};
}

[[noreturn]] void throw_too_few_samples(const BatchOptions& options, const StepShares& shares,
                                        const std::string& name) {
  if (options.global_batch_size > 0)
    throw InvalidArgumentError("global batch size {} is larger than the {} of {}; at most {} is possible",
                               options.global_batch_size, count_of(shares.samples, "sample"), name,
                               shares.samples);
  const std::int64_t shard = shares.samples / shares.ranks;
  throw InvalidArgumentError(
      "batch size {} is larger than the shard of {} samples ({} samples of {}, {} rank{}); at most {} is "
      "possible",
      options.batch_size, shard, shares.samples, name, shares.ranks, shares.ranks == 1 ? "" : "s",
      shard / shares.passes);
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
  nlohmann::json json = {{"epoch", position.epoch}, {"sample", position.sample}};
  if (position.seed) json["seed"] = *position.seed;
  if (position.samples) json["samples"] = *position.samples;
  return json_text(json);
}

BatchPosition position_from_json(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    const auto count = [&](const char* key) {
      if (!json.at(key).is_number_integer())
        throw DataLossError("\"{}\" is not a data position: {} is no count", text, key);
      return json.at(key).get<std::int64_t>();
    };
    BatchPosition position{.epoch = count("epoch")};
    if (json.contains("sample")) {
      position.sample = count("sample");
      if (json.contains("seed")) position.seed = json.at("seed").get<std::uint64_t>();
      if (json.contains("samples")) position.samples = count("samples");
    } else if (__builtin_mul_overflow(count("batch"), count("global_batch_size"), &position.sample)) {
      throw DataLossError("\"{}\" is not a data position: it has too many samples", text);
    }
    return position;
  } catch (const nlohmann::json::exception& error) {
    throw DataLossError("\"{}\" is not a data position: {}", text, error.what());
  }
}

BatchPosition in_epoch_of(std::int64_t samples, BatchPosition position, bool log) {
  // More than there are now tell it, too.
  const std::int64_t before = position.samples.value_or(std::max(samples, position.sample));
  if (before != samples && position.sample > 0) {
    if (log)
      log_warning(
          "there are {} training samples, and were {}{} when the training stopped in the middle of epoch {}: "
          "the "
          "epoch begins anew with all of them",
          samples, position.samples ? "" : "at least ", before, position.epoch + 1);
    position.sample = 0;
  }
  position.samples = samples;
  return position;
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
  shares_ = step_shares(options_, samples_->size());
  if (options_.ranks > shares_.samples)
    throw InvalidArgumentError("{} ranks for {} of {}; a rank needs at least one sample", options_.ranks,
                               count_of(shares_.samples, "sample"), kind.name);
  if (shares_.steps_per_epoch() == 0) throw_too_few_samples(options_, shares_, kind.name);
  threads_ = read_threads(kind, options_);
  position_.seed = options_.seed;
  position_.samples = shares_.samples;
}

void Batches::next(Batch& batch) {
  if (pass_ == 0) step_begin_ = position_.sample;
  const StepShares::Part own = shares_.part(step_begin_, pass_);
  const SampleRange read = own.computed;
  const SampleKind& kind = samples_->kind();
  reserve(batch.samples, options_.as_pixels && kind.are_pixels ? DType::u8 : kind.dtype,
          batch_shape(kind, read.size(), options_.layout));
  reserve(batch.labels, label_dtype(kind), labels_shape(kind, read.size()));
  batch.weight = own.weight;
  if (order_epoch_ != position_.epoch) {
    shuffle_samples(*position_.seed, position_.epoch, samples_->size(), order_);
    order_epoch_ = position_.epoch;
  }
  threads_->run(read.size(), [&](std::int64_t i) {
    const std::int64_t sample = order_[static_cast<std::size_t>(read.begin + i)];
    CounterRandom random(*position_.seed, RandomPurpose::sample_changes,
                         static_cast<std::uint64_t>(position_.epoch * samples_->size() + sample));
    samples_->read(sample, &random, batch, i);
  });
  pass_ = (pass_ + 1) % shares_.passes;
  position_.sample = own.pass_end;
  if (pass_ == 0 && shares_.is_over(position_.sample)) {
    ++position_.epoch;
    position_.sample = 0;
  }
}

void Batches::seek(const BatchPosition& position) {
  if (position.epoch < 0 || position.sample < 0)
    throw InvalidArgumentError("{} is not a position in the data", to_json(position));
  const std::uint64_t seed = position.seed.value_or(*position_.seed);
  if (seed != *position_.seed && options_.rank == 0)
    log_info(
        "data position: the samples are in the order of seed {}, and go on in it, not in that of seed {}",
        seed, *position_.seed);
  if (seed != *position_.seed) order_epoch_ = -1;
  position_ = in_epoch_of(shares_.samples, position, options_.rank == 0);
  position_.seed = seed;
  if (shares_.is_over(position_.sample)) ++position_.epoch, position_.sample = 0;
  pass_ = 0;
}

EvaluationBatches::EvaluationBatches(Dataset dataset, const BatchOptions& options)
    : EvaluationBatches(image_samples(std::move(dataset)), options) {}

EvaluationBatches::EvaluationBatches(std::shared_ptr<const SampleSet> samples, const BatchOptions& options)
    : samples_(std::move(samples)), options_(options) {
  check_options(options_);
  const SampleRange own = part_of_samples(samples_->size(), options_.rank, options_.ranks);
  begin_ = next_ = own.begin;
  end_ = own.end;
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
