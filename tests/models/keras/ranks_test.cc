// Training on several ranks: what Horovod's callbacks and its optimizer promise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include <kolo/core/base/error.h>
#include <kolo/core/base/text.h>
#include <kolo/models/batches.h>
#include <kolo/models/keras/callbacks.h>
#include <kolo/models/keras/data_internal.h>
#include <kolo/models/keras/distributed_callbacks.h>
#include <kolo/optimizer/hooks.h>
#include <kolo/optimizer/rules.h>
#include <tests/models/keras/rank_networks.h>
#include <tests/models/keras/values.h>
#include <tests/support/comma_locale.h>

namespace kolo::keras {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Distributed, ClipsBeforeItAverages) {  // row 41
  if (world_group().size() != 2) GTEST_SKIP() << "of two ranks";
  Workspace ws;
  const Sequential net = slope(ws, distributed(SGD({.lr = 1, .clipvalue = 1})));
  net.train_on_batch(floats({1}, {rank() == 0 ? 3 : .5F}), floats({1}, {0}));
  EXPECT_FLOAT_EQ(net.get_weights()[0].value<float>(), -.75F);
}

TEST(Distributed, ComparesTheStepsOfAnEpoch) {  // row 43
  if (world_group().size() != 2) GTEST_SKIP() << "of two ranks";
  Workspace ws;
  const Sequential net = slope(ws, distributed(SGD()));
  const Tensor x = Tensor::zeros(DType::f32, {rank() == 0 ? 640 : 600});
  EXPECT_THAT([&] { net.fit(x, x, {.verbose = 0}); },
              ThrowsMessage<FailedPreconditionError>(
                  HasSubstr("Ranks disagree on the steps of an epoch: 20 on rank 0 but 19 on rank 1")));
}

// Weights of the last rank are changed behind batch 5.
class ChangeWeights : public Callback {
 public:
  void on_batch_end(std::int64_t batch, Logs&) override {
    if (batch != 4 || rank() != world_group().size() - 1) return;
    std::vector<Tensor> weights = model().get_weights();
    weights[0].data<float>()[0] += 1e-6F;
    model().set_weights(weights);
  }
};

TEST(Distributed, NamesTheWeightThatDiffers) {
  if (world_group().size() == 1) GTEST_SKIP() << "nobody to differ from";
  ASSERT_EQ(setenv("KOLO_CHECK_DRIFT", "2", 1), 0);
  Workspace ws;
  const Sequential net = slope(ws, distributed(SGD()));
  const Tensor x = Tensor::zeros(DType::f32, {40});
  const int last = world_group().size() - 1;
  net.fit(x, x, {.batch_size = 4, .verbose = 0});
  EXPECT_THAT([&] { net.fit(x, x, {.batch_size = 4, .verbose = 0, .callbacks = {ChangeWeights()}}); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr(
                  fmt::format("/kernel\" on rank {} since a step in 5..6 (1 of 1 variables)", last))));
  unsetenv("KOLO_CHECK_DRIFT");
}

TEST(MetricAverage, AveragesOverTheRanks) {  // row 42
  if (world_group().size() != 2) GTEST_SKIP() << "of two ranks";
  Workspace ws;
  const Sequential net = slope(ws, SGD());
  for (const bool weighted : {false, true}) {
    MetricAverageCallback average(weighted);
    average.attach(net, {.samples = rank() == 0 ? 30 : 10});
    const double own = rank() == 0 ? .5 : .8;
    Logs logs(Logs::Entries{{"loss", own}, {"top 5: \"best\" von 10", 2 * own}});
    average.on_epoch_end(0, logs);
    EXPECT_NEAR(*logs.find("loss"), weighted ? .575 : .65, 1e-12);
    EXPECT_NEAR(*logs.find("top 5: \"best\" von 10"), weighted ? 1.15 : 1.3, 1e-12);
  }
}

TEST(Broadcast, MakesAllRanksStartAlike) {
  Workspace ws({.seed = 7 + static_cast<std::uint64_t>(rank())});
  const Sequential net(ws, {Dense(4, {.input_shape = {3}}), Dense(1)});
  net.compile({.optimizer = distributed(Adam({.lr = .01 * (1 + rank())})), .loss = "mse"});
  const Tensor x = Tensor::zeros(DType::f32, {8, 3}), y = Tensor::zeros(DType::f32, {8});
  net.fit(x, y,
          {.batch_size = 4, .epochs = 2, .verbose = 0, .callbacks = {BroadcastGlobalVariablesCallback(0)}});
  std::string own = fmt::format("{:a} {:a}", net.optimizer().lr().get(), net.optimizer().iterations().get());
  for (const Tensor& weight : net.get_weights())
    for (const float value : elements(weight)) own += fmt::format(" {:a}", value);
  for (const std::string& other : world_group().allgather(own)) EXPECT_EQ(other, own);
}

// Ranks that have trained apart from each other with one optimizer, which is then compiled again.
TEST(Broadcast, GivesAllRanksTheSlotsOfAnOptimizerThatIsCompiledAgain) {
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.kernel_initializer = "zeros", .input_shape = {1}})});
  const Optimizer adam(std::make_shared<kolo::AdamOptimizer>(.05F));
  net.compile({.optimizer = adam, .loss = "mse"});
  const Tensor x = floats({2, 1}, {1, 2});
  for (int step = 0; step < 3; ++step)
    net.train_on_batch(x,
                       floats({2, 1}, {static_cast<float>(rank()), static_cast<float>(2 * rank() - step)}));
  net.compile({.optimizer = adam, .loss = "mse"});
  net.fit(x, x,
          {.epochs = 2, .verbose = 0, .callbacks = {BroadcastGlobalVariablesCallback(0)}, .shuffle = false});
  std::vector<double> own;
  for (const Tensor& weight : net.get_weights())
    for (const float value : elements(weight)) own.push_back(value);
  for (const std::string& other : world_group().allgather(exact_text(own))) EXPECT_EQ(other, exact_text(own));
}

// Rank 0 speaks German, in which a comma stands before a fraction.
TEST(LocaleOnRanks, ChangesNoNumberThatTravels) {
  std::optional<CommaLocale> german;
  if (rank() == 0) german.emplace();
  if (world_group().broadcast(german && german->is_set() ? "," : ".", 0) == ".")
    GTEST_SKIP() << "no localedef here";
  Workspace ws;
  const Sequential net = slope(ws, SGD());
  net.set_weights({floats({1, 1}, {.75F})});
  const Tensor ones = floats({6, 1}, {1, 1, 1, 1, 1, 1});
  EXPECT_DOUBLE_EQ(net.evaluate(ones, ones, {.verbose = 0, .shard = true})[0], .75);
  EXPECT_DOUBLE_EQ(average_metrics({{"loss", 1.5}}, 12345.5).at("loss"), 1.5);
  MetricAverageCallback average(true);
  average.attach(net, {.samples = 10});
  Logs logs(Logs::Entries{{"loss", .75}});
  average.on_epoch_end(0, logs);
  EXPECT_DOUBLE_EQ(*logs.find("loss"), .75);
  EarlyStopping stopping({.monitor = "loss"});
  stopping.on_train_begin(logs);
  stopping.on_epoch_end(0, logs);
  EXPECT_EQ(world_group().broadcast(stopping.state(), 0), stopping.state());
}

TEST(MetricAverage, IsWarnedOfBehindACallbackThatDecidesByMetrics) {
  if (world_group().size() == 1) GTEST_SKIP() << "one rank decides alone";
  Workspace ws;
  const Sequential net = slope(ws, distributed(SGD()));
  const Tensor x = Tensor::zeros(DType::f32, {4});
  const auto told = [&](const std::vector<AnyCallback>& callbacks) {
    ::testing::internal::CaptureStderr();
    net.fit(x, x, {.verbose = 0, .callbacks = callbacks});
    return ::testing::internal::GetCapturedStderr();
  };
  const AnyCallback average = MetricAverageCallback(),
                    stopping = EarlyStopping({.monitor = "loss", .patience = 9});
  const auto warning =
      HasSubstr("MetricAverageCallback stands behind EarlyStopping, which sees each rank's own metrics");
  EXPECT_THAT(told({average, stopping}), ::testing::Not(warning));
  const std::string text = told({stopping, average});
  if (rank() == 0) {
    EXPECT_THAT(text, warning);
  }
}

// Row 44, on any number of ranks: global batches of 128, the same ones as on one rank, which takes them by
// hand.
TEST(Shard, TrainsAsOneRankWithALargerBatch) {
  const int ranks = world_group().size();
  const std::int64_t own = 128 / ranks, global = own * ranks;
  const Tensor x = scattered({1000, 4}, 37), y = scattered({1000, 1}, 11);
  Workspace ws, alone;
  const Sequential net = two_layers(ws, distributed(SGD({.lr = .1})));
  const Sequential one = two_layers(alone, SGD({.lr = .1}));
  const History history = net.fit(x, y, {.batch_size = own, .epochs = 3, .verbose = 0, .shard = true});
  EXPECT_EQ(net.optimizer().iterations().get(), 3 * (1000 / global));
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> order;
    models::shuffle_samples(1, epoch, 1000, order);
    for (std::int64_t b = 0; b < 1000 / global; ++b) {
      const std::span<const std::int64_t> rows(order.data() + b * global, static_cast<std::size_t>(global));
      one.train_on_batch(detail::gathered(x, rows, DType::f32), detail::gathered(y, rows, DType::f32));
    }
  }
  const auto together = net.get_weights(), by_hand = one.get_weights();
  for (std::size_t i = 0; i < by_hand.size(); ++i)
    EXPECT_THAT(elements(together[i]),
                ::testing::Pointwise(::testing::FloatNear(1e-5F), elements(by_hand[i])));
}

// 1002 samples in batches of 100: parts of 33 and 34, and a last batch of two, which are too few for three
// ranks.
TEST(GlobalBatch, MakesTheTrainingOfOneRank) {
  const Tensor x = scattered({1002, 4}, 37), y = scattered({1002, 1}, 11);
  const auto compiled = [](Workspace& ws, const Optimizer& optimizer) {
    Sequential net(
        ws, {Dense(6, {.activation = "tanh", .kernel_regularizer = l2(.01), .input_shape = {4}}), Dense(1)});
    net.compile({.optimizer = optimizer, .loss = "mse", .metrics = {"mae"}, .weighted_metrics = {"mae"}});
    return net;
  };
  Workspace ws, alone;
  const Sequential net = compiled(ws, distributed(SGD({.lr = .1}))), one = compiled(alone, SGD({.lr = .1}));
  const History history = net.fit(x, y,
                                  {.epochs = 2,
                                   .verbose = 0,
                                   .callbacks = {MetricAverageCallback()},
                                   .global_batch_size = 100,
                                   .epoch_end = models::EpochEnd::fill});
  EXPECT_EQ(net.optimizer().iterations().get(), 22);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::int64_t> order;
    models::shuffle_samples(1, epoch, 1002, order);
    std::vector<double> sums(3);
    for (std::int64_t first = 0; first < 1002; first += 100) {
      const std::int64_t count = std::min<std::int64_t>(100, 1002 - first);
      const std::span<const std::int64_t> rows(order.data() + first, static_cast<std::size_t>(count));
      const auto values =
          one.train_on_batch(detail::gathered(x, rows, DType::f32), detail::gathered(y, rows, DType::f32));
      for (std::size_t i = 0; i < 3; ++i) sums[i] += values[i] * static_cast<double>(count);
    }
    const auto at = static_cast<std::size_t>(epoch);
    EXPECT_NEAR(history["loss"][at], sums[0] / 1002, 1e-5);
    EXPECT_NEAR(history["mean_absolute_error"][at], sums[1] / 1002, 1e-5);
    EXPECT_NEAR(history["weighted_mean_absolute_error"][at], sums[2] / 1002, 1e-5);
  }
  const auto together = net.get_weights(), by_hand = one.get_weights();
  for (std::size_t i = 0; i < by_hand.size(); ++i)
    EXPECT_THAT(elements(together[i]),
                ::testing::Pointwise(::testing::FloatNear(1e-5F), elements(by_hand[i])));
}

TEST(GlobalBatch, IsRefusedWhereRanksWouldHaveNoSamples) {
  Workspace ws;
  const Sequential net = two_layers(ws, distributed(SGD()));
  const Tensor x = scattered({10, 4}, 37), y = scattered({10, 1}, 11);
  if (world_group().size() > 1) {
    EXPECT_THAT([&] { net.fit(x, y, {.verbose = 0, .global_batch_size = 1}); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("global_batch_size 1 is less than")));
  }
  EXPECT_THAT([&] { net.fit(x, y, {.verbose = 0, .global_batch_size = 11}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("10 samples are fewer than one batch of 11")));
}

TEST(Shard, EvaluatesEachSampleOnce) {
  Workspace ws;
  const Sequential net = two_layers(ws, SGD());
  const Tensor x = scattered({35, 4}, 37), y = scattered({35, 1}, 11);
  const double whole = net.evaluate(x, y, {.verbose = 0})[0];
  EXPECT_NEAR(net.evaluate(x, y, {.batch_size = 8, .verbose = 0, .shard = true})[0], whole, 1e-6);
}

TEST(Shard, ComparesSeedAndSamples) {
  if (world_group().size() != 2) GTEST_SKIP() << "of two ranks";
  Workspace ws({.seed = 1 + static_cast<std::uint64_t>(rank())});
  const Sequential net = two_layers(ws, distributed(SGD()));
  const Tensor x = scattered({100, 4}, 37), y = scattered({100, 1}, 11);
  EXPECT_THAT([&] { net.fit(x, y, {.batch_size = 8, .verbose = 0, .shard = true}); },
              ThrowsMessage<FailedPreconditionError>(
                  HasSubstr("Ranks disagree on the seed: 1 on rank 0 but 2 on rank 1")));
}

// Row 16: without .shard each rank draws by seed + rank. Batches of one sample, whose loss is its number,
// tell.
TEST(Fit, DrawsAnOrderOfItsOwnOnEachRank) {
  struct Losses : Callback {
    std::vector<double> all;
    void on_batch_end(std::int64_t, Logs& logs) override { all.push_back(*logs.find("loss")); }
  };
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.use_bias = false, .kernel_initializer = "ones", .input_shape = {1}})});
  net.compile({.optimizer = SGD({.lr = 0}), .loss = itself});
  Tensor x(DType::f32, {10});
  for (int i = 0; i < 10; ++i) x.data<float>()[i] = static_cast<float>(i);
  const auto losses = std::make_shared<Losses>();
  net.fit(x, x, {.batch_size = 1, .verbose = 0, .callbacks = {losses}});
  std::vector<std::int64_t> order;
  models::shuffle_samples(1 + static_cast<std::uint64_t>(rank()), 0, 10, order);
  EXPECT_EQ(losses->all, std::vector<double>(order.begin(), order.end()));
}

struct StopOnRank : Callback {
  explicit StopOnRank(int of) : asks(of) {}
  int asks;
  std::int64_t batches = 0;
  void on_batch_end(std::int64_t batch, Logs&) override {
    ++batches;
    if (rank() == asks && batch == 2) model().set_stop_training(true);
  }
};

TEST(Stop, ComesBehindTheNextBatchOfAllRanks) {
  const int last = world_group().size() - 1;
  Workspace ws;
  const Sequential net = two_layers(ws, distributed(SGD()));
  const auto stop = std::make_shared<StopOnRank>(last);
  const Tensor x = scattered({64, 4}, 37), y = scattered({64, 1}, 11);
  net.fit(x, y, {.batch_size = 8, .epochs = 3, .verbose = 0, .callbacks = {stop}});
  EXPECT_EQ(stop->batches, last == 0 ? 3 : 4);
}

TEST(Stop, AtAnEpochsEndIsThatOfAll) {
  Workspace ws;
  const Sequential net = two_layers(ws, distributed(SGD()));
  const Tensor x = scattered({24, 4}, 37), y = scattered({24, 1}, 11);
  const auto stop = std::make_shared<StopOnRank>(0);  // behind the last of three batches
  const History history = net.fit(x, y, {.batch_size = 8, .epochs = 4, .verbose = 0, .callbacks = {stop}});
  EXPECT_EQ(history.epoch.size(), 1U);
}

struct Batches : Source {
  explicit Batches(std::int64_t count) : left(count) {}
  std::int64_t left;
  bool throws = false;
  bool next(Samples& batch) override {
    if (left-- > 0) {
      batch = {.x = scattered({8, 4}, 37), .y = scattered({8, 1}, 11)};
      return true;
    }
    if (throws) throw DataLossError("the disk is gone");
    return false;
  }
};

TEST(SourceOnRanks, EndsForAllWhereItEndsOnOne) {
  Workspace ws;
  const Sequential net = two_layers(ws, distributed(SGD()));
  Batches source(rank() == 0 ? 5 : 9);
  net.fit(source, {.epochs = 3, .verbose = 0, .steps_per_epoch = 4});
  EXPECT_EQ(net.optimizer().iterations().get(), 5);
}

TEST(FailureOnRanks, EndsTheOthers) {
  if (world_group().size() == 1) GTEST_SKIP() << "of several ranks";
  Workspace ws;
  const Sequential net = two_layers(ws, distributed(SGD()));
  Batches source(rank() == 0 ? 3 : 9);
  source.throws = true;
  const auto fit = [&] { net.fit(source, {.epochs = 2, .verbose = 0, .steps_per_epoch = 4}); };
  if (rank() == 0) EXPECT_THROW(fit(), DataLossError);
  else EXPECT_THAT(fit, ThrowsMessage<AbortedError>(HasSubstr("rank 0 failed")));
}

}  // namespace
}  // namespace kolo::keras
