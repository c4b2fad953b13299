#include <kolo/models/batches.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>
#include <kolo/models/counter_random.h>

namespace kolo::models {
namespace {

void check_options(const BatchOptions& options) {
  if (options.batch_size < 1)
    throw InvalidArgumentError("batch size {}; it must be at least 1", options.batch_size);
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks)
    throw InvalidArgumentError("rank {} of {} ranks; ranks are 0 to {}", options.rank, options.ranks,
                               options.ranks - 1);
}

// The tensor's own memory again where its size fits and nobody else holds it.
void reserve(Tensor& tensor, DType dtype, const Shape& shape) {
  const bool reusable =
      tensor && tensor.dtype() == dtype && tensor.shape() == shape && tensor.buffer().use_count() == 1;
  if (!reusable) tensor = Tensor(dtype, shape);
}

Shape images_shape(const Dataset& dataset, std::int64_t samples, ImageLayout layout) {
  return layout == ImageLayout::chw ? Shape{samples, dataset.channels(), dataset.height(), dataset.width()}
                                    : Shape{samples, dataset.pixels()};
}

float scaled(std::uint8_t pixel) { return static_cast<float>(pixel) / 255.0F; }

// Sample `from` of the data set becomes sample `to` of the batch.
void copy_sample(const Dataset& dataset, std::int64_t from, const Batch& batch, std::int64_t to) {
  const std::int64_t count = dataset.pixels();
  const std::uint8_t* const pixels = dataset.images.data<std::uint8_t>() + from * count;
  std::transform(pixels, pixels + count, batch.images.data<float>() + to * count, scaled);
  batch.labels.data<std::int32_t>()[to] = dataset.labels.data<std::uint8_t>()[from];
}

// How one image is changed.
struct Change {
  std::int64_t down = 0, right = 0;
  bool mirrored = false;
};

Change draw_change(const Augmentation& augmentation, CounterRandom random) {
  const auto shift = [&] {
    return static_cast<std::int64_t>(
               random.below(static_cast<std::uint64_t>(2 * augmentation.most_shift + 1))) -
           augmentation.most_shift;
  };
  Change change;
  change.down = shift();
  change.right = shift();
  change.mirrored = augmentation.mirrored && random.below(2) == 1;
  return change;
}

// First moved, then mirrored.
void copy_changed(const Dataset& dataset, std::int64_t from, const Change& change, float* image) {
  const std::int64_t height = dataset.height(), width = dataset.width();
  const std::uint8_t* plane = dataset.images.data<std::uint8_t>() + from * dataset.pixels();
  for (std::int64_t c = 0; c < dataset.channels(); ++c, plane += height * width)
    for (std::int64_t y = 0; y < height; ++y) {
      const std::int64_t row = y - change.down;
      for (std::int64_t x = 0; x < width; ++x) {
        const std::int64_t col = (change.mirrored ? width - 1 - x : x) - change.right;
        const bool inside = row >= 0 && row < height && col >= 0 && col < width;
        *image++ = inside ? scaled(plane[row * width + col]) : 0.0F;
      }
    }
}

}  // namespace

std::string to_json(const BatchPosition& position) {
  return nlohmann::json{
      {"epoch", position.epoch}, {"batch", position.batch}, {"global_batch_size", position.global_batch_size}}
      .dump();
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
    : dataset_(std::move(dataset)), options_(options) {
  check_options(options_);
  const std::int64_t samples = dataset_.size();
  if (options_.ranks > samples)
    throw InvalidArgumentError("{} ranks for {} samples of {}; a rank needs at least one sample",
                               options_.ranks, samples, dataset_.name);
  if (const auto shard = samples / options_.ranks; options_.batch_size > shard)
    throw InvalidArgumentError(
        "batch size {} is larger than the shard of {} samples ({} samples of {}, {} rank{}); at most {} is "
        "possible",
        options_.batch_size, shard, samples, dataset_.name, options_.ranks, options_.ranks == 1 ? "" : "s",
        shard);
  steps_per_epoch_ = samples / global_batch_size();
  if (options_.augmentation.most_shift < 0)
    throw InvalidArgumentError("images shifted by at most {} pixels; it must be at least 0",
                               options_.augmentation.most_shift);
  images_shape_ = images_shape(dataset_, options_.batch_size, options_.layout);
  labels_shape_ = Shape{options_.batch_size};
  position_.global_batch_size = global_batch_size();
}

void Batches::next(Batch& batch) {
  reserve(batch.images, DType::f32, images_shape_);
  reserve(batch.labels, DType::i32, labels_shape_);
  if (order_epoch_ != position_.epoch) {
    shuffle_samples(options_.seed, position_.epoch, dataset_.size(), order_);
    order_epoch_ = position_.epoch;
  }
  const auto first = position_.batch * global_batch_size() + options_.rank * options_.batch_size;
  const Augmentation& augmentation = options_.augmentation;
  for (std::int64_t i = 0; i < options_.batch_size; ++i) {
    const std::int64_t sample = order_[static_cast<std::size_t>(first + i)];
    copy_sample(dataset_, sample, batch, i);
    if (augmentation.most_shift == 0 && !augmentation.mirrored) continue;
    const auto drawn = static_cast<std::uint64_t>(position_.epoch * dataset_.size() + sample);
    const CounterRandom random(options_.seed, RandomPurpose::image_changes, drawn);
    copy_changed(dataset_, sample, draw_change(augmentation, random),
                 batch.images.data<float>() + i * dataset_.pixels());
  }
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
    : dataset_(std::move(dataset)), options_(options) {
  check_options(options_);
  begin_ = dataset_.size() * options_.rank / options_.ranks;
  end_ = dataset_.size() * (options_.rank + 1) / options_.ranks;
  next_ = begin_;
}

bool EvaluationBatches::next(Batch& batch) {
  const auto samples = std::min(options_.batch_size, end_ - next_);
  if (samples <= 0) return false;
  reserve(batch.images, DType::f32, images_shape(dataset_, samples, options_.layout));
  reserve(batch.labels, DType::i32, {samples});
  for (std::int64_t i = 0; i < samples; ++i) copy_sample(dataset_, next_ + i, batch, i);
  next_ += samples;
  return true;
}

}  // namespace kolo::models
