#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/models/batches.h>

#include "tests/models/numbered_dataset.h"

namespace kolo::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// What all ranks see in one step, rank after rank.
std::vector<int> global_step(std::vector<Batches>& ranks) {
  std::vector<int> seen;
  for (auto& rank : ranks) {
    const auto part = next_numbers(rank);
    seen.insert(seen.end(), part.begin(), part.end());
  }
  return seen;
}

std::vector<Batches> all_ranks(const Dataset& dataset, int ranks, std::int64_t batch_size,
                               std::uint64_t seed = 1) {
  std::vector<Batches> made;
  for (int rank = 0; rank < ranks; ++rank)
    made.emplace_back(dataset,
                      BatchOptions{.batch_size = batch_size, .rank = rank, .ranks = ranks, .seed = seed});
  return made;
}

TEST(Batches, FollowThePermutationOfSeedAndEpoch) {
  auto ranks = all_ranks(numbered_dataset(300), 3, 8);
  std::vector<std::int64_t> order;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    shuffle_samples(1, epoch, 300, order);
    for (std::ptrdiff_t b = 0; b < 300 / 24; ++b) {
      const std::vector<int> run(order.begin() + b * 24, order.begin() + (b + 1) * 24);
      EXPECT_EQ(global_step(ranks), run) << "epoch " << epoch << " batch " << b;
    }
  }
}

TEST(Batches, ShowTheSameSamplesToAnyNumberOfRanks) {
  const Dataset dataset = numbered_dataset(500);
  auto one = all_ranks(dataset, 1, 128), two = all_ranks(dataset, 2, 64), four = all_ranks(dataset, 4, 32);
  for (int step = 0; step < 10; ++step) {
    const auto seen = global_step(one);
    EXPECT_EQ(global_step(two), seen);
    EXPECT_EQ(global_step(four), seen);
  }
}

TEST(Batches, ShowNoSampleTwiceInAnEpochAndDropTheIncompleteRest) {
  auto ranks = all_ranks(numbered_dataset(103), 2, 5);
  EXPECT_EQ(ranks[0].steps_per_epoch(), 10);
  std::set<int> seen;
  for (int step = 0; step < 10; ++step) {
    for (const int number : global_step(ranks)) EXPECT_TRUE(seen.insert(number).second) << number;
  }
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(ranks[1].position(), (BatchPosition{1, 0, 1, 103}));
}

TEST(Batches, OrderEpochsAndSeedsDifferently) {
  std::vector<std::int64_t> first, other_epoch, other_seed;
  shuffle_samples(1, 0, 100, first);
  shuffle_samples(1, 1, 100, other_epoch);
  shuffle_samples(2, 0, 100, other_seed);
  EXPECT_NE(first, other_epoch);
  EXPECT_NE(first, other_seed);
  EXPECT_NE(other_epoch, other_seed);
}

// Computed by tests/models/sample_order.py, which follows the sources named in samples.h and
// batches.h.
TEST(Batches, OrderSamplesAlikeOnEveryMachine) {
  std::vector<std::int64_t> order;
  shuffle_samples(1, 0, 10, order);
  EXPECT_THAT(order, ElementsAre(7, 4, 6, 8, 3, 2, 1, 9, 5, 0));
  shuffle_samples(42, 3, 10, order);
  EXPECT_THAT(order, ElementsAre(8, 7, 0, 2, 6, 3, 4, 9, 5, 1));
}

TEST(Batches, PutEverySampleAtEveryPlaceEquallyOften) {
  constexpr int kSamples = 5, kEpochs = 5000;
  std::vector<std::vector<int>> counts(kSamples, std::vector<int>(kSamples));
  std::vector<std::int64_t> order;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    shuffle_samples(9, epoch, kSamples, order);
    for (std::size_t place = 0; place < kSamples; ++place)
      ++counts[place][static_cast<std::size_t>(order[place])];
  }
  for (const auto& place : counts) {
    for (const int count : place) EXPECT_NEAR(count, 1000, 142);  // five standard deviations of 28.3
  }
}

TEST(Batches, ScalePixelsToOneAndKeepLabels) {
  Dataset dataset = numbered_dataset(1);
  dataset.images.span<std::uint8_t>()[783] = 51;
  dataset.labels.span<std::uint8_t>()[0] = 7;
  Batch batch;
  Batches(dataset, {.batch_size = 1}).next(batch);
  EXPECT_EQ(batch.samples.shape(), (Shape{1, 1, 28, 28}));
  EXPECT_EQ(batch.samples.span<float>()[783], 51.0F / 255.0F);
  EXPECT_THAT(batch.labels.span<std::int32_t>(), ElementsAre(7));
  Batches(dataset, {.batch_size = 1, .layout = ImageLayout::flat}).next(batch);
  EXPECT_EQ(batch.samples.shape(), (Shape{1, 784}));
}

// Image i is all 0 but for its first row, whose pixels are 1, 2, 3, … times 10.
Dataset striped_dataset(std::int64_t samples) {
  Dataset dataset{Tensor::zeros(DType::u8, {samples, 3, 4, 6}), Tensor::zeros(DType::u8, {samples}),
                  "stripes"};
  for (std::int64_t plane = 0; plane < samples * 3; ++plane)
    for (std::int64_t x = 0; x < 6; ++x)
      dataset.images.data<std::uint8_t>()[plane * 24 + x] = static_cast<std::uint8_t>(10 * (x + 1));
  return dataset;
}

// The row that is not 0, in whole pixels, or nothing: that of channel `c` of a batch of one image.
std::vector<int> stripe_of(const Batch& batch, std::int64_t c) {
  const auto pixels = batch.samples.span<float>().subspan(static_cast<std::size_t>(c * 24), 24);
  for (std::size_t row = 0; row < 4; ++row) {
    std::vector<int> found;
    for (std::size_t x = 0; x < 6; ++x)
      found.push_back(static_cast<int>(std::lround(pixels[row * 6 + x] * 255)));
    if (std::any_of(found.begin(), found.end(), [](int pixel) { return pixel > 0; })) return found;
  }
  return {};
}

TEST(Batches, KeepTheShapeOfImagesInColour) {
  Batch batch;
  Batches(striped_dataset(2), {.batch_size = 2}).next(batch);
  EXPECT_EQ(batch.samples.shape(), (Shape{2, 3, 4, 6}));
  EXPECT_THAT(stripe_of(batch, 2), ElementsAre(10, 20, 30, 40, 50, 60));
}

TEST(Batches, MirrorHalfOfTheImages) {
  Batches batches(striped_dataset(1), {.batch_size = 1, .augmentation = {.mirrored = true}});
  Batch batch;
  int mirrored = 0;
  for (int epoch = 0; epoch < 200; ++epoch) {
    batches.next(batch);
    if (stripe_of(batch, 1) == std::vector<int>{60, 50, 40, 30, 20, 10}) ++mirrored;
    else EXPECT_THAT(stripe_of(batch, 1), ElementsAre(10, 20, 30, 40, 50, 60));
  }
  EXPECT_NEAR(mirrored, 100, 36);  // five standard deviations of 7.1
}

TEST(Batches, ShiftAllChannelsOfAnImageAlikeAndFillWithZeros) {
  Batches batches(striped_dataset(1), {.batch_size = 1, .augmentation = {.most_shift = 1}});
  Batch batch;
  std::set<std::vector<int>> seen;
  for (int epoch = 0; epoch < 200; ++epoch) {
    batches.next(batch);
    EXPECT_EQ(stripe_of(batch, 0), stripe_of(batch, 2));
    seen.insert(stripe_of(batch, 0));
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAre(IsEmpty(), ElementsAre(10, 20, 30, 40, 50, 60),
                                                  ElementsAre(0, 10, 20, 30, 40, 50),
                                                  ElementsAre(20, 30, 40, 50, 60, 0)));
}

TEST(Batches, ChangeImagesAlikeOnAnyNumberOfRanksAndAfterResuming) {
  const Dataset dataset = striped_dataset(12);
  const Augmentation all = {.most_shift = 2, .mirrored = true};
  Batches alone(dataset, {.batch_size = 4, .augmentation = all});
  Batches second(dataset, {.batch_size = 2, .rank = 1, .ranks = 2, .augmentation = all});
  Batch whole, half;
  for (int i = 0; i < 4; ++i) alone.next(whole);
  second.seek({.epoch = 1, .sample = 0});
  second.next(half);
  const auto pixels = whole.samples.span<float>();
  EXPECT_THAT(half.samples.span<float>(), testing::ElementsAreArray(pixels.subspan(pixels.size() / 2)));
}

TEST(Batches, FillTensorsAnewUnlessTheyAreShared) {
  Batches batches(numbered_dataset(40), {.batch_size = 4});
  Batch batch;
  batches.next(batch);
  const std::byte* const memory = batch.samples.raw();
  batches.next(batch);
  EXPECT_EQ(batch.samples.raw(), memory);
  const Tensor kept = batch.samples;
  const float first = kept.data<float>()[0];
  batches.next(batch);
  EXPECT_NE(batch.samples.raw(), memory);
  EXPECT_EQ(kept.data<float>()[0], first);
}

TEST(Batches, GoOnWhereASavedPositionWas) {
  const Dataset dataset = numbered_dataset(50);
  Batches through(dataset, {.batch_size = 7}), resumed(dataset, {.batch_size = 7});
  for (int step = 0; step < 10; ++step) next_numbers(through);
  EXPECT_EQ(to_json(through.position()), R"({"epoch":1,"sample":21,"samples":50,"seed":1})");
  resumed.seek(position_from_json(to_json(through.position())));
  for (int step = 0; step < 10; ++step) EXPECT_EQ(next_numbers(resumed), next_numbers(through));
}

TEST(Batches, GoOnAtTheNextSampleWithoutAWord) {
  auto ranks = all_ranks(numbered_dataset(1000), 2, 50);
  testing::internal::CaptureStderr();
  for (auto& rank : ranks) rank.seek({3, 448});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
  EXPECT_EQ(ranks[1].position(), (BatchPosition{3, 448, 1, 1000}));
  std::vector<std::int64_t> order;
  shuffle_samples(1, 3, 1000, order);
  EXPECT_EQ(global_step(ranks), (std::vector<int>(order.begin() + 448, order.begin() + 548)));
}

TEST(Batches, BeginTheNextEpochIfNoStepIsLeft) {
  Batches batches(numbered_dataset(100), {.batch_size = 30}),
      filling(numbered_dataset(100), {.batch_size = 30, .epoch_end = EpochEnd::fill});
  batches.seek({0, 90});
  EXPECT_EQ(batches.position(), (BatchPosition{1, 0, 1, 100}));
  filling.seek({0, 90});
  EXPECT_EQ(filling.position(), (BatchPosition{0, 90, 1, 100}));
  filling.seek({0, 100});
  EXPECT_EQ(filling.position(), (BatchPosition{1, 0, 1, 100}));
}

TEST(Batches, GoOnInTheOrderOfThePositionsSeed) {
  const Dataset dataset = numbered_dataset(60);
  Batches through(dataset, {.batch_size = 7, .seed = 1}), resumed(dataset, {.batch_size = 7, .seed = 2});
  for (int step = 0; step < 4; ++step) next_numbers(through);
  next_numbers(resumed);  // has drawn its own order
  testing::internal::CaptureStderr();
  resumed.seek(through.position());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("in the order of seed 1"));
  for (int step = 0; step < 10; ++step) EXPECT_EQ(next_numbers(resumed), next_numbers(through));
}

TEST(Batches, RefuseWhatIsNoPosition) {
  Batches batches(numbered_dataset(100), {.batch_size = 10});
  batches.seek({1, 20});
  const auto seeking = [&](BatchPosition position) {
    return [&batches, position] { batches.seek(position); };
  };
  EXPECT_THAT(seeking({-1, 0}), ThrowsMessage<InvalidArgumentError>(HasSubstr("not a position")));
  EXPECT_THAT(seeking({0, -1}), ThrowsMessage<InvalidArgumentError>(HasSubstr("not a position")));
  EXPECT_EQ(batches.position(), (BatchPosition{1, 20, 1, 100}));
}

TEST(Batches, BeginAnEpochAnewWhereTheSamplesHaveChangedInItsMiddle) {
  Batches before(numbered_dataset(50), {.batch_size = 7}), same(numbered_dataset(50), {.batch_size = 9});
  for (int step = 0; step < 10; ++step) next_numbers(before);
  const std::string kept = to_json(before.position());
  testing::internal::CaptureStderr();
  same.seek(position_from_json(kept));
  EXPECT_EQ(same.position(), (BatchPosition{1, 21, 1, 50}));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
  for (const std::int64_t samples : {20, 40, 60}) {
    Batches now(numbered_dataset(samples), {.batch_size = 7});
    testing::internal::CaptureStderr();
    now.seek(position_from_json(kept));
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr("and were 50 when the training stopped in the middle of epoch 2"));
    EXPECT_EQ(now.position(), (BatchPosition{1, 0, 1, samples}));
  }
  // What tells no number does so with more samples than there are.
  EXPECT_EQ(in_epoch_of(917, {2, 640, 1}, false), (BatchPosition{2, 640, 1, 917}));
  EXPECT_EQ(in_epoch_of(368, {2, 640, 1}, false), (BatchPosition{2, 0, 1, 368}));
}

TEST(Batches, ReadThePositionsOfEarlierVersions) {
  EXPECT_EQ(position_from_json(R"({"batch":7,"epoch":2,"global_batch_size":128})"), (BatchPosition{2, 896}));
}

TEST(Batches, RefuseTextThatIsNoPosition) {
  for (const char* text : {"", "{", "[]", "7", "{}", R"({"epoch":2})", R"({"epoch":2,"sample":"1"})",
                           R"({"epoch":2,"sample":1.5})", R"({"epoch":2,"sample":1,"seed":"x"})",
                           R"({"epoch":2,"sample":1,"samples":"x"})", R"({"batch":1,"epoch":2})",
                           R"({"batch":"1","epoch":2,"global_batch_size":3})",
                           R"({"batch":1.5,"epoch":2,"global_batch_size":3})",
                           R"({"batch":9223372036854775807,"epoch":2,"global_batch_size":2})"})
    EXPECT_THAT([&] { position_from_json(text); },
                ThrowsMessage<DataLossError>(HasSubstr("not a data position")))
        << text;
}

TEST(Batches, NameMoreRanksThanSamples) {
  EXPECT_THAT([] { Batches(numbered_dataset(3), {.batch_size = 1, .ranks = 4}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("4 ranks for 3 samples")));
}

TEST(Batches, NameBatchLargerThanTheShard) {
  EXPECT_THAT(
      [] { Batches(numbered_dataset(101), {.batch_size = 51, .ranks = 2}); },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("batch size 51"), HasSubstr("50 samples"))));
  EXPECT_EQ(Batches(numbered_dataset(101), {.batch_size = 50, .ranks = 2}).steps_per_epoch(), 1);
}

TEST(Batches, RefuseOptionsOutOfRange) {
  EXPECT_THAT([] { Batches(numbered_dataset(9), {.batch_size = 0}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("batch size 0")));
  EXPECT_THAT([] { Batches(numbered_dataset(9), {.batch_size = 1, .rank = 2, .ranks = 2}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("rank 2 of 2")));
}

TEST(Batches, NameGlobalBatchThatCannotBe) {
  const auto making = [](std::int64_t size, int ranks) {
    return [=] { Batches(numbered_dataset(9), {.global_batch_size = size, .ranks = ranks}); };
  };
  EXPECT_THAT(making(4, 6),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("global batch size 4 is less than 6 ranks")));
  EXPECT_THAT(making(-1, 1), ThrowsMessage<InvalidArgumentError>(HasSubstr("global batch size -1")));
  EXPECT_THAT(making(10, 2), ThrowsMessage<InvalidArgumentError>(
                                 HasSubstr("global batch size 10 is larger than the 9 samples")));
  EXPECT_EQ(
      Batches(numbered_dataset(9), {.global_batch_size = 10, .epoch_end = EpochEnd::fill}).steps_per_epoch(),
      1);
}

TEST(EvaluationBatches, CountEverySampleOnceOverAnyNumberOfRanks) {
  const Dataset dataset = numbered_dataset(103);
  for (const int ranks : {1, 2, 3, 4, 7, 103, 200}) {
    std::vector<int> seen;
    for (int rank = 0; rank < ranks; ++rank) {
      EvaluationBatches batches(dataset, {.batch_size = 10, .rank = rank, .ranks = ranks});
      std::int64_t taken = 0;
      for (Batch batch; batches.next(batch); taken += batch.labels.elements()) {
        EXPECT_EQ(batch.samples.shape().dim(0), batch.labels.elements());
        for (const int number : numbers(batch)) seen.push_back(number);
      }
      EXPECT_EQ(taken, batches.size());
    }
    std::vector<int> all(103);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(seen, all) << ranks << " ranks";
  }
}

TEST(EvaluationBatches, StartAgain) {
  EvaluationBatches batches(numbered_dataset(5), {.batch_size = 3});
  Batch batch;
  for (int pass = 0; pass < 2; ++pass) {
    ASSERT_TRUE(batches.next(batch));
    EXPECT_THAT(numbers(batch), ElementsAre(0, 1, 2));
    ASSERT_TRUE(batches.next(batch));
    EXPECT_THAT(numbers(batch), ElementsAre(3, 4));
    EXPECT_FALSE(batches.next(batch));
    batches.rewind();
  }
}

}  // namespace
}  // namespace kolo::models
