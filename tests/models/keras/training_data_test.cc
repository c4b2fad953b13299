// The samples of fit where a training goes on with another number of ranks, or other batches.
#include <kolo/models/keras/training_data_internal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <random>
#include <set>

#include <kolo/models/keras/callbacks.h>
#include <kolo/models/keras/checkpoint_callback.h>
#include <kolo/models/keras/model.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using models::EpochEnd;

Sequential scaled(Workspace& ws) {
  Sequential net(ws, {Dense(1, {.use_bias = false, .input_shape = {1}})});
  net.compile({.optimizer = "sgd", .loss = "mse"});
  return net;
}

Tensor counted(std::int64_t samples) {
  Tensor x(DType::f32, {samples, 1});
  std::iota(x.data<float>(), x.data<float>() + samples, 0.F);
  return x;
}

// Epochs on 3, 2, 5, … ranks, changed at random steps.
void expect_each_once(detail::BatchOrder order, std::uint64_t seed) {
  constexpr std::int64_t kSamples = 103;
  Workspace ws;
  const Sequential net = scaled(ws);
  detail::Trainer& trainer = net.model().trainer();
  const detail::Feed all = trainer.checked(counted(kSamples), counted(kSamples), {});
  std::mt19937_64 random(seed);
  detail::DataPlace place;
  std::set<float> seen;
  std::int64_t epoch = 0;
  for (int turn = 0; epoch < 2; ++turn) {
    std::vector<std::unique_ptr<detail::TrainingData>> ranks;
    order.ranks = std::vector{3, 2, 5, 1}[static_cast<std::size_t>(turn) % 4];
    for (order.rank = 0; order.rank < order.ranks; ++order.rank) {
      ranks.push_back(detail::read_ahead(trainer, detail::array_data(trainer, all, order)));
      ranks.back()->seek(epoch, place);
    }
    for (std::uint64_t steps = 1 + random() % 4; steps > 0 && !ranks[0]->is_over(place); --steps) {
      const std::int64_t before = place.taken;
      std::int64_t taken = 0;
      for (const auto& rank : ranks) {
        const std::optional<detail::Feed> feed = rank->next();
        ASSERT_TRUE(feed);
        for (std::int64_t row = 0; row < feed->counted(); ++row)
          EXPECT_TRUE(seen.insert(feed->inputs[0].data<float>()[row]).second);
        taken += feed->counted();
        place = feed->end;
      }
      EXPECT_EQ(place.taken, before + taken);
    }
    if (!ranks[0]->is_over(place)) continue;
    if (order.epoch_end == EpochEnd::fill) {
      EXPECT_EQ(seen.size(), 103U);
    }
    seen.clear();
    place = {};
    ++epoch;
  }
}

TEST(TrainingData, HasEachSampleOnceOnAnyRanks) {
  for (const EpochEnd end : {EpochEnd::drop, EpochEnd::fill})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      expect_each_once({.batch_size = 4, .shared = true, .epoch_end = end}, seed);
      expect_each_once({.batch_size = 4, .shuffle = "batch", .shared = true, .epoch_end = end}, seed);
      expect_each_once({.shared = true, .global_batch_size = 10, .epoch_end = end}, seed);
    }
}

TEST(TrainingData, CountsItsOwnSamplesAndSteps) {
  Workspace ws;
  const Sequential net = scaled(ws);
  detail::Trainer& trainer = net.model().trainer();
  const detail::Feed all = trainer.checked(counted(103), counted(103), {});
  std::int64_t together = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const auto data = detail::array_data(
        trainer, all,
        {.shared = true, .global_batch_size = 10, .epoch_end = EpochEnd::fill, .rank = rank, .ranks = 3});
    EXPECT_EQ(data->steps(), 11);
    EXPECT_TRUE(data->has_unequal_parts());
    together += data->samples();
  }
  EXPECT_EQ(together, 103);
  const auto own = detail::array_data(trainer, all, {.batch_size = 10});
  EXPECT_EQ(own->steps(), 11);
  EXPECT_EQ(own->samples(), 103);
}

// The numbers of the digits that a source of Batches hands out.
class Numbered final : public models::SampleSet {
 public:
  explicit Numbered(std::int64_t samples)
      : SampleSet({.name = "numbers", .shape = {1}, .classes = 1, .label_kind = models::LabelKind::numbers}),
        samples_(samples) {}
  std::int64_t size() const override { return samples_; }
  void read(std::int64_t index, models::CounterRandom*, const models::Batch& batch,
            std::int64_t place) const override {
    batch.samples.data<float>()[place] = static_cast<float>(index);
    batch.labels.data<float>()[place] = 0;
  }

 private:
  std::int64_t samples_;
};

struct StopAfter : Callback {
  explicit StopAfter(std::int64_t count) : left(count) {}
  std::int64_t left;
  void on_batch_end(std::int64_t, Logs&) override {
    if (--left == 0) model().set_stop_training(true);
  }
};

TEST(SourceOfBatches, GoesOnAtTheNextSampleWithOtherBatches) {
  const auto folder = std::filesystem::temp_directory_path() / ("keras_source_" + std::to_string(getpid()));
  const auto samples = std::make_shared<Numbered>(100);
  const auto fit = [&](std::int64_t batch_size, std::int64_t stop_after, bool resume) {
    Workspace ws;
    const Sequential net = scaled(ws);
    models::Batches batches(samples, {.batch_size = batch_size});
    net.fit(batches,
            {.epochs = 2,
             .verbose = 0,
             .callbacks = {StopAfter(stop_after), CheckpointCallback(folder.string(), {.save_steps = 100})},
             .steps_per_epoch = 8,
             .resume = resume});
    return batches.position();
  };
  fit(7, 3, false);  // 21 samples
  const models::BatchPosition after = fit(5, 2, true);
  // Some batches more are read ahead: whole ones, from sample 21 on.
  EXPECT_EQ((after.sample - 21) % 5, 0);
  EXPECT_GE(after.sample, 31);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kolo::keras
