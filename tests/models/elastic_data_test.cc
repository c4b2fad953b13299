// What the ranks of a training see whose number changes: each sample of an epoch once, whatever holds the
// data.
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <unistd.h>

#include <kolo/models/batches.h>
#include <kolo/models/data.h>
#include <kolo/models/prefetch.h>

#include "tests/models/numbered_dataset.h"

namespace kolo::models {
namespace {

using ::testing::ElementsAre;

// Hands out the samples of another set, and keeps their numbers.
class Recording final : public SampleSet {
 public:
  explicit Recording(std::shared_ptr<const SampleSet> inner)
      : SampleSet(inner->kind()), inner_(std::move(inner)) {}
  std::int64_t size() const override { return inner_->size(); }
  void read(std::int64_t index, CounterRandom* random, const Batch& batch,
            std::int64_t place) const override {
    inner_->read(index, random, batch, place);
    read_.push_back(index);
  }
  std::vector<std::int64_t> take() const { return std::exchange(read_, {}); }

 private:
  std::shared_ptr<const SampleSet> inner_;
  mutable std::vector<std::int64_t> read_;  // one thread: nothing is decoded
};

// All ranks of one start, in one process.
struct Start {
  Start(const std::shared_ptr<const Recording>& samples, BatchOptions options, int number) : set(samples) {
    for (int rank = 0; rank < number; ++rank) {
      options.rank = rank;
      options.ranks = number;
      ranks.push_back(std::make_unique<Batches>(samples, options));
    }
  }
  // The samples of the next batch, rank after rank, and the sum of what they count for.
  std::pair<std::vector<std::int64_t>, double> next() {
    std::vector<std::int64_t> taken;
    double weights = 0;
    for (const auto& rank : ranks) {
      Batch batch;
      set->take();
      rank->next(batch);
      const auto own = set->take();
      weights += batch.weight;
      if (batch.weight > 0) taken.insert(taken.end(), own.begin(), own.end());
      else EXPECT_GE(own.size(), 1U);
    }
    return {taken, weights};
  }
  std::shared_ptr<const Recording> set;
  std::vector<std::unique_ptr<Batches>> ranks;
};

std::vector<int> ranks_of_starts() { return {3, 2, 5, 1, 4}; }

// Epochs of a training that is stopped at random steps and goes on with another number of ranks each time.
void expect_each_once(const std::shared_ptr<const SampleSet>& data, const BatchOptions& options,
                      std::uint64_t seed) {
  const auto samples = std::make_shared<Recording>(data);
  std::mt19937_64 random(seed);
  std::string saved = to_json(BatchPosition{.seed = 7});
  std::set<std::int64_t> seen;
  std::int64_t epoch = 0, taken = 0;
  for (int turn = 0; epoch < 3; ++turn) {
    const int number = ranks_of_starts()[static_cast<std::size_t>(turn) % 5];
    Start start(samples, options, number);
    for (const auto& rank : start.ranks) rank->seek(position_from_json(saved));
    if (start.ranks[0]->position().epoch > epoch) {  // what is left is too little for a step of so many ranks
      EXPECT_EQ(options.epoch_end, EpochEnd::drop);
      ++epoch, taken = 0;
      seen.clear();
    }
    EXPECT_EQ(start.ranks[0]->position(), (BatchPosition{epoch, taken, 7, data->size()}));
    // Stops come behind whole steps.
    for (std::uint64_t steps = 1 + random() % 4; steps > 0 && start.ranks[0]->position().epoch == epoch;
         --steps)
      for (int pass = 0; pass < options.passes; ++pass) {
        const auto [numbers, weights] = start.next();
        for (const std::int64_t sample : numbers)
          EXPECT_TRUE(seen.insert(sample).second) << "sample " << sample << " of epoch " << epoch;
        if (options.passes == 1) {
          EXPECT_NEAR(weights, number, 1e-6);
        }
        taken += static_cast<std::int64_t>(numbers.size());
      }
    saved = to_json(start.ranks[0]->position());
    if (start.ranks[0]->position().epoch == epoch) continue;
    if (options.epoch_end == EpochEnd::fill) {
      EXPECT_EQ(static_cast<std::int64_t>(seen.size()), data->size());
    }
    ++epoch, taken = 0;
    seen.clear();
  }
}

std::shared_ptr<const SampleSet> numbered(std::int64_t samples) {
  return image_samples(numbered_dataset(samples));
}

TEST(ElasticData, IsTakenOnceWithBatchesOfEachRank) {
  for (const EpochEnd end : {EpochEnd::drop, EpochEnd::fill})
    for (std::uint64_t seed = 0; seed < 20; ++seed)
      expect_each_once(numbered(101), {.batch_size = 4, .epoch_end = end}, seed);
}

TEST(ElasticData, IsTakenOnceWithAGlobalBatch) {
  for (const EpochEnd end : {EpochEnd::drop, EpochEnd::fill})
    for (std::uint64_t seed = 0; seed < 20; ++seed)
      expect_each_once(numbered(103), {.global_batch_size = 10, .epoch_end = end}, seed);
}

TEST(ElasticData, IsTakenOnceWithSeveralPasses) {
  for (const EpochEnd end : {EpochEnd::drop, EpochEnd::fill})
    for (std::uint64_t seed = 0; seed < 10; ++seed)
      expect_each_once(numbered(103), {.global_batch_size = 17, .passes = 3, .epoch_end = end}, seed);
}

// Row 22 of the table of examples: 3 ranks × 33, 7 steps, then 2 × 40.
TEST(ElasticData, GoesOnAtTheNextSampleWithAnotherBatchSize) {
  const auto samples = std::make_shared<Recording>(numbered(1000));
  Start before(samples, {.batch_size = 33}, 3);
  for (int step = 0; step < 7; ++step) before.next();
  Start after(samples, {.batch_size = 40}, 2);
  for (const auto& rank : after.ranks) rank->seek(before.ranks[0]->position());
  EXPECT_EQ(after.ranks[0]->position().sample, 693);
  std::vector<std::int64_t> order;
  shuffle_samples(1, 0, 1000, order);
  EXPECT_EQ(after.next().first, (std::vector<std::int64_t>(order.begin() + 693, order.begin() + 773)));
}

// Row 23.
TEST(ElasticData, IsSharedOutInPartsThatDifferByOne) {
  Start start(std::make_shared<Recording>(numbered(1000)), {.global_batch_size = 100}, 3);
  std::vector<std::int64_t> sizes;
  std::vector<float> weights;
  for (const auto& rank : start.ranks) {
    Batch batch;
    rank->next(batch);
    sizes.push_back(batch.labels.elements());
    weights.push_back(batch.weight);
  }
  EXPECT_THAT(sizes, ElementsAre(33, 33, 34));
  EXPECT_THAT(weights, ElementsAre(0.99F, 0.99F, 1.02F));
}

// What a last step leaves without samples computes that step's again: of one sample batch normalization makes
// a variance of 0.
TEST(ElasticData, GivesRanksWithoutSamplesThoseOfTheStepWhichCountNothing) {
  Start start(std::make_shared<Recording>(numbered(102)), {.batch_size = 20, .epoch_end = EpochEnd::fill}, 5);
  start.next();
  std::vector<std::int64_t> order;
  shuffle_samples(1, 0, 102, order);
  std::vector<float> weights;
  for (const auto& rank : start.ranks) {
    Batch batch;
    start.set->take();
    rank->next(batch);
    weights.push_back(batch.weight);
    const auto computed = start.set->take();
    if (batch.weight == 0) EXPECT_THAT(computed, ElementsAre(order[100], order[101]));
    else EXPECT_EQ(computed.size(), 1U);
  }
  EXPECT_THAT(weights, ElementsAre(0, 0, 2.5F, 0, 2.5F));
  EXPECT_EQ(start.ranks[3]->position(), (BatchPosition{1, 0, 1, 102}));
}

// Many ranks with small batches: the memory of a rank holds no more.
TEST(ElasticData, GivesRanksWithoutSamplesNoMoreThanAUsualPart) {
  Start start(std::make_shared<Recording>(numbered(49)), {.batch_size = 2, .epoch_end = EpochEnd::fill}, 20);
  start.next();
  for (const auto& rank : start.ranks) {
    Batch batch;
    rank->next(batch);
    EXPECT_LE(batch.labels.elements(), 2);
  }
}

TEST(ElasticData, CountsExactlyOneWhereAllPartsAreEqual) {
  Start start(std::make_shared<Recording>(numbered(90)), {.global_batch_size = 30}, 3);
  Batch batch;
  start.ranks[1]->next(batch);
  EXPECT_EQ(batch.weight, 1);
  EXPECT_TRUE(start.ranks[1]->has_equal_parts());
}

TEST(ElasticData, TellsItsPositionThroughAThreadThatReadsAhead) {
  const auto set = numbered(103);
  Prefetcher ahead(
      std::make_unique<Batches>(set, BatchOptions{.global_batch_size = 30, .epoch_end = EpochEnd::fill}));
  std::vector<std::int64_t> sizes, samples;
  for (int step = 0; step < 5; ++step) {
    Batch batch;
    ahead.next(batch);
    sizes.push_back(batch.labels.elements());
    samples.push_back(ahead.position().sample);
  }
  EXPECT_THAT(sizes, ElementsAre(30, 30, 30, 13, 30));
  EXPECT_THAT(samples, ElementsAre(30, 60, 90, 0, 30));
}

// ---- Each kind of data that --data names.

class DataOnDisk : public ::testing::Test {
 protected:
  DataOnDisk()
      : folder_(std::filesystem::temp_directory_path() / ("elastic_data_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~DataOnDisk() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::shared_ptr<const SampleSet> load(const std::string& name, const Shape& sample,
                                        DType input = DType::f32) const {
    return load_data({.data = (folder_ / name).string(), .sample = sample, .input = input}, Split::train);
  }
  void expect_once(const std::shared_ptr<const SampleSet>& data) const {
    for (const EpochEnd end : {EpochEnd::drop, EpochEnd::fill})
      expect_each_once(data, {.global_batch_size = 7, .epoch_end = end}, 1);
  }
  const std::filesystem::path folder_;
};

std::string table(int first, int rows) {
  std::string text = "a,b,label\n";
  for (int i = first; i < first + rows; ++i)
    text += std::to_string(i) + "," + std::to_string(i * i) + (i % 2 == 0 ? ",yes\n" : ",no\n");
  return text;
}

TEST_F(DataOnDisk, IsATable) {
  write("t.csv", table(0, 60));
  expect_once(load("t.csv", {2}));
}

TEST_F(DataOnDisk, IsSeveralTables) {
  std::filesystem::create_directories(folder_ / "tables");
  write("tables/a.csv", table(0, 30));
  write("tables/b.csv", table(30, 31));
  expect_once(load("tables", {2}));
}

TEST_F(DataOnDisk, IsAText) {
  std::string text;
  for (int i = 0; i < 700; ++i) text += static_cast<char>('a' + i * i % 23);
  write("t.txt", text);
  expect_once(load("t.txt", {8}, DType::i32));
}

TEST_F(DataOnDisk, IsArrays) {
  Tensor x(DType::f32, {61, 3}), y(DType::i32, {61});
  for (std::int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = static_cast<float>(i);
  for (std::int64_t i = 0; i < y.elements(); ++i)
    y.data<std::int32_t>()[i] = static_cast<std::int32_t>(i % 3);
  expect_once(array_samples("arrays", x, y));
}

}  // namespace
}  // namespace kolo::models
