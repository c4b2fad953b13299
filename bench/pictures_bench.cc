#include <bench/pictures_bench.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/models/data.h>

namespace kolo::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::shared_ptr<const models::SampleSet> samples_of(const PicturesBenchOptions& options) {
  models::LeftOut left_out;
  models::ImageFolder folder{
      .name = options.data, .classes = {"any"}, .files = {}, .labels = {}, .left_out = ""};
  folder.files = models::images_below(options.data, left_out);
  if (folder.files.empty())
    throw NotFoundError("--data {}: there are no pictures in the folder", options.data);
  folder.labels.resize(folder.files.size());
  const models::Augmentation augmentation =
      options.augment.empty() ? models::Augmentation{} : models::augmentation_from(options.augment);
  return models::folder_samples(std::move(folder), {3, options.side, options.side}, augmentation);
}

void read(const models::SampleSet& samples, std::int64_t number, const models::Batch& batch) {
  models::CounterRandom random(1, models::RandomPurpose::sample_changes, static_cast<std::uint64_t>(number));
  samples.read(number % samples.size(), &random, batch, 0);
}

}  // namespace

void pictures_bench(const PicturesBenchOptions& options) {
  const auto samples = samples_of(options);
  const auto one = [&] {
    return models::Batch{.samples = Tensor(DType::f32, models::batch_shape(samples->kind(), 1)),
                         .labels = Tensor::zeros(DType::i32, {1})};
  };
  const models::Batch batch = one(), again = one();
  for (std::int64_t i = 0; i < samples->size(); ++i) read(*samples, i, batch);
  const auto start = Clock::now();
  std::int64_t pictures = 0;
  double seconds = 0;
  // Whole passes: each file counts alike.
  for (; seconds < options.seconds; seconds = std::chrono::duration<double>(Clock::now() - start).count())
    for (std::int64_t i = 0; i < samples->size(); ++i) read(*samples, pictures++, batch);
  read(*samples, pictures - 1, again);
  const auto pixels = batch.samples.span<float>(), same = again.samples.span<float>();
  if (!std::equal(pixels.begin(), pixels.end(), same.begin()))
    throw InternalError("{}: picture {} is not the same again with the same random numbers", options.data,
                        pictures - 1);
  const double speed = std::round(static_cast<double>(pictures) / seconds * 10) / 10;
  if (options.json)
    fmt::print("{}\n", json_text(nlohmann::ordered_json{{"data", options.data},
                                                        {"side", options.side},
                                                        {"augment", options.augment},
                                                        {"pictures", pictures},
                                                        {"pictures_per_s", speed}}));
  else
    fmt::print("{}: {} pictures to 3 x {} x {}{}: {:.1f} a second on one core\n", options.data, pictures,
               options.side, options.side, options.augment.empty() ? "" : ", " + options.augment, speed);
}

}  // namespace kolo::bench
