#include <kolo/models/keras/callbacks.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/models/keras/callback_list_internal.h>
#include <kolo/models/keras/distributed_callbacks.h>
#include <kolo/models/keras/model.h>
#include <tests/core/summary/read_events.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;

Output itself(const Scope& s, Output, Output p) { return reduce_sum(s, p, {.axes = {1}}); }

// A callback, and a model that it can act on, told of epochs with given numbers.
class Told {
 public:
  Told(Callback& callback, const Optimizer& optimizer = SGD({.lr = .4}))
      : callback_(callback),
        net_(ws_, {Dense(1, {.use_bias = false, .kernel_initializer = "ones", .input_shape = {1}})}) {
    net_.compile({.optimizer = optimizer, .loss = itself});
    callback.attach(net_, {.epochs = 100, .steps = 50});
    callback.on_train_begin(none_);
  }
  // Names and values behind the epoch.
  Logs epoch(const std::string& name, double value) {
    Logs logs(Logs::Entries{{name, value}});
    callback_.on_epoch_begin(epoch_, none_);
    callback_.on_epoch_end(epoch_++, logs);
    return logs;
  }
  /// Epochs until it asked to stop; values.size() if it did not.
  std::size_t stopped_at(const std::string& name, const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      net_.set_weights({floats({1, 1}, {static_cast<float>(i)})});
      epoch(name, values[i]);
      if (net_.stop_training()) return i;
    }
    return values.size();
  }
  const Sequential& net() const { return net_; }
  double lr() const { return net_.optimizer().lr().get(); }

 private:
  Workspace ws_;
  Callback& callback_;
  Sequential net_;
  Logs none_;
  std::int64_t epoch_ = 0;
};

TEST(EarlyStopping, WaitsForAnImprovement) {  // row 20
  EarlyStopping loss({.min_delta = .1, .patience = 2}), acc({.monitor = "val_acc", .patience = 2});
  EXPECT_EQ(Told(loss).stopped_at("val_loss", {3, 2.5, 2.6, 2.45, 2}), 3U);
  EXPECT_EQ(Told(acc).stopped_at("val_acc", {.2, .4, .39, .41, .40, .38}), 5U);
  EarlyStopping baseline({.patience = 1, .baseline = 1});
  EXPECT_EQ(Told(baseline).stopped_at("val_loss", {2, 1.5}), 0U);
}

TEST(EarlyStopping, RestoresTheBestWeights) {  // row 21
  EarlyStopping stopping({.min_delta = .1, .patience = 2, .verbose = 1, .restore_best_weights = true});
  Told told(stopping);
  ::testing::internal::CaptureStdout();
  told.stopped_at("val_loss", {3, 2.5, 2.6, 2.45});
  Logs none;
  stopping.on_train_end(none);
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(told.net().get_weights()[0].value<float>(), 1);
  EXPECT_THAT(text, HasSubstr("Restoring model weights from the end of the best epoch"));
  EXPECT_THAT(text, HasSubstr("Epoch 00004: early stopping"));
}

TEST(ReduceLROnPlateau, CoolsDown) {  // row 22
  ReduceLROnPlateau reduce({.factor = .25, .patience = 2, .cooldown = 1});
  Told told(reduce);
  std::vector<double> rates, logged;
  for (const double loss : {2., 1.5, 1.5, 1.49995, 1.6, 1.4, 1.5, 1.5}) {
    logged.push_back(*told.epoch("val_loss", loss).find("lr"));
    rates.push_back(told.lr());
  }
  EXPECT_THAT(rates, Pointwise(DoubleNear(1e-7), {.4, .4, .4, .1, .1, .1, .1, .025}));
  EXPECT_NEAR(logged[3], .4, 1e-7);  // of the epoch that has ended
  EXPECT_THAT([] { ReduceLROnPlateau({.factor = 1}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("does not support a factor >= 1.0.")));
}

class InFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("keras_callbacks_" + std::to_string(getpid()));
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.insert(entry.path().filename());
    return names;
  }
  static std::string read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(InFolder, ModelCheckpointFillsItsPath) {  // row 23
  ModelCheckpoint checkpoint(path("m-{epoch:03d}-{val_acc:.1f}"), {.period = 2});
  Told told(checkpoint);
  for (const double acc : {.5, .61, .7, .75, .8}) told.epoch("val_acc", acc);
  EXPECT_EQ(files(), (std::set<std::string>{"m-002-0.6.json", "m-002-0.6.safetensors", "m-004-0.8.json",
                                            "m-004-0.8.safetensors"}));
  ModelCheckpoint other(path("{lost}"));
  EXPECT_THAT([&] { Told(other).epoch("val_acc", 1); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("epoch,val_acc")));
  EXPECT_THROW(ModelCheckpoint("m.hdf5"), UnimplementedError);
}

TEST_F(InFolder, ModelCheckpointKeepsTheBest) {
  ModelCheckpoint checkpoint(path("m{epoch}"),
                             {.verbose = 1, .save_best_only = true, .save_weights_only = true});
  Told told(checkpoint);
  ::testing::internal::CaptureStdout();
  for (const double loss : {.5, .4, .4}) told.epoch("val_loss", loss);
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(text, HasSubstr("Epoch 00002: val_loss improved from 0.50000 to 0.40000, saving model to " +
                              path("m2")));
  EXPECT_THAT(text, HasSubstr("Epoch 00003: val_loss did not improve from 0.40000"));
  EXPECT_EQ(files().count("m3.json"), 0U);
}

TEST_F(InFolder, CSVLoggerWritesALineAnEpoch) {  // row 24
  CSVLogger logger(path("log"), ";");
  {
    Told told(logger);
    told.epoch("loss", .25);
    told.epoch("other", 1);
  }
  EXPECT_EQ(read(path("log")), "epoch;loss\n0;0.25\n1;NA\n");
  CSVLogger more(path("log"), ";", true);
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.use_bias = false, .kernel_initializer = "ones", .input_shape = {1}})});
  net.compile({.optimizer = SGD({.lr = 0}), .loss = itself});
  const Tensor x = floats({2}, {1, 2});
  net.fit(x, x,
          {.epochs = 3,
           .verbose = 0,
           .callbacks = {more},
           .validation_data = Samples{.x = x, .y = x},
           .initial_epoch = 2});
  EXPECT_EQ(read(path("log")), "epoch;loss\n0;0.25\n1;NA\n2;1.5;1.5\n");
}

TEST_F(InFolder, CSVLoggerQuotesANameThatHoldsAComma) {
  CSVLogger logger(path("log"));
  {
    Told told(logger);
    told.epoch("top 5, \"best\"", .25);
  }
  EXPECT_EQ(read(path("log")), "epoch,\"top 5, \"\"best\"\"\"\n0,0.25\n");
}

// Of two epochs of two batches each, of 8 and 4 samples; read by the reader that shares no line with kolo.
TEST_F(InFolder, TensorBoardWritesEventFiles) {
  const auto events = [&](const std::string& name, TensorBoardOptions options) {
    Workspace ws;
    const Sequential net(ws, {Dense(1, {.input_shape = {1}})});
    net.compile({.optimizer = SGD(), .loss = "mse"});
    const Tensor x = Tensor::zeros(DType::f32, {12});
    net.fit(x, x,
            {.batch_size = 8, .epochs = 2, .verbose = 0, .callbacks = {TensorBoard(path(name), options)}});
    std::string all;
    for (const auto& file : std::filesystem::directory_iterator(path(name)))
      for (const std::string& event : read_events(file.path())) all += event + '\n';
    return all;
  };
  const std::string by_epoch = events("epoch", {.histogram_freq = 1});
  EXPECT_THAT(by_epoch, HasSubstr(R"("graph")"));
  EXPECT_THAT(by_epoch, HasSubstr(R"({"step":1,"values":[{"tag":"loss","scalar":0.0}]})"));
  EXPECT_THAT(by_epoch, HasSubstr(R"("tag":"dense_1/kernel")"));
  const std::string by_samples = events("samples", {.update_freq = 12, .write_graph = false});
  EXPECT_THAT(by_samples, Not(HasSubstr(R"("graph")")));
  EXPECT_THAT(by_samples, HasSubstr(R"({"step":24,"values":[{"tag":"loss","scalar":0.0}]})"));
  EXPECT_THAT(by_samples, Not(HasSubstr(R"({"step":8,)")));
  EXPECT_THROW(TensorBoard("x", {.update_freq = "hour"}), InvalidArgumentError);
}

TEST(TerminateOnNaN, StopsTheTraining) {
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.kernel_initializer = "ones", .input_shape = {2}})});
  net.compile({.loss = itself});
  const Tensor x = floats({2, 2}, {1, 1, 3e38F, 3e38F}),
               y = floats({2}, {1, 1});  // the second sum is infinite
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(
      net.fit(x, y,
              {.batch_size = 1, .epochs = 3, .verbose = 0, .callbacks = {TerminateOnNaN()}, .shuffle = false})
          .epoch.size(),
      1U);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              HasSubstr("Batch 1: Invalid loss, terminating training"));
}

TEST(BaseLogger, PutsTheMeansOfAnEpochInFrontOfItsLogs) {
  BaseLogger logger;
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.input_shape = {1}})});
  logger.attach(net, {.metrics = {"loss", "acc"}});
  Logs none, first(Logs::Entries{{"batch", 0}, {"size", 3}, {"loss", 1}, {"acc", .5}, {"mine", 7}}),
      last(Logs::Entries{{"batch", 1}, {"size", 1}, {"loss", 3}, {"acc", 1}}),
      end(Logs::Entries{{"val_loss", 9}});
  logger.on_train_begin(none);
  logger.on_batch_end(0, first);
  logger.on_batch_end(1, last);
  logger.on_epoch_end(0, end);
  EXPECT_EQ(end.entries(), (Logs::Entries{{"loss", 1.5}, {"acc", .625}, {"val_loss", 9}}));
  EXPECT_EQ(logger.samples(), 0);
  EXPECT_THAT(
      [&] { logger.set_state(R"({"samples": 1, "sums": {"mae": "0x1p+0"}})"); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("a training with \"mae\"; this one has loss, acc")));
}

TEST(History, KeepsInTheListWhatCallbacksBeforeItHaveAdded) {
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.input_shape = {1}})});
  net.compile({.optimizer = SGD({.lr = .5}), .loss = itself});
  const auto history = std::make_shared<History>();
  const Tensor x = floats({1}, {1});
  const AnyCallback scheduler =
      LearningRateScheduler(LearningRateScheduler::Schedule([](std::int64_t, double lr) { return lr; }));
  const History returned =
      net.fit(x, x, {.epochs = 2, .verbose = 0, .callbacks = {scheduler, history, scheduler}});
  EXPECT_EQ(history->epoch, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(history->history.size(), 2U);  // loss, lr
  EXPECT_EQ(returned.history, history->history);
}

TEST(ProgbarLogger, RefusesAnotherCountMode) {
  EXPECT_THAT([] { ProgbarLogger("epochs"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Unknown `count_mode`: epochs")));
}

TEST(CallbackList, WarnsOnceOfCallbacksThatAreSlowerThanABatch) {
  const auto warnings = [](double seconds, double batch_seconds) {
    detail::SlowCallbacks slow("on_batch_end");
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < 30; ++i) slow.note(seconds, batch_seconds);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warnings(.2, .1),
              ::testing::MatchesRegex(".*Method on_batch_end\\(\\) is slow compared to the batch update "
                                      "\\(0.200000\\). Check your callbacks.\n"));
  EXPECT_EQ(warnings(.09, .01), "");
  EXPECT_EQ(warnings(.2, .25), "");
}

// One slow call among ten is none that matters.
TEST(CallbackList, WarnsByTheMedianOfTenCalls) {
  detail::SlowCallbacks slow("on_batch_begin");
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 20; ++i) slow.note(i % 3 == 1 ? .5 : .01, .02);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(LearningRateScheduler, SetsTheRateOfAnEpoch) {
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.input_shape = {1}})});
  net.compile({.optimizer = SGD({.lr = 1}), .loss = itself});
  const Tensor x = floats({1}, {1});
  const LearningRateScheduler halved(
      LearningRateScheduler::Schedule([](std::int64_t, double lr) { return lr / 2; }));
  EXPECT_THAT(net.fit(x, x, {.epochs = 2, .verbose = 0, .callbacks = {halved}})["lr"],
              Pointwise(DoubleNear(1e-7), {.5, .25}));
  const LearningRateScheduler wrong(
      std::function<double(std::int64_t)>([](std::int64_t) { return std::nan(""); }));
  EXPECT_THAT([&] { net.fit(x, x, {.verbose = 0, .callbacks = {wrong}}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("The output of the \"schedule\" function should be float.")));
}

TEST(LearningRateWarmup, EndsAtTheRateThatWasAskedFor) {  // row 38
  const auto rate = [](double lr, int ranks, std::int64_t epochs, std::int64_t steps, std::int64_t epoch,
                       std::int64_t batch) {
    return lr * LearningRateWarmupCallback::multiplier(
                    static_cast<double>(epoch) + static_cast<double>(batch) / static_cast<double>(steps),
                    steps, ranks, epochs);
  };
  EXPECT_NEAR(rate(.8, 4, 5, 50, 0, 0), .2024, 1e-9);
  EXPECT_NEAR(rate(.8, 4, 5, 50, 0, 49), .32, 1e-9);
  EXPECT_NEAR(rate(.8, 4, 5, 50, 2, 24), .5, 1e-9);
  EXPECT_NEAR(rate(.8, 4, 5, 50, 4, 49), .8, 1e-9);
  EXPECT_NEAR(rate(.02, 2, 3, 10, 0, 0), .0103333333, 1e-9);
  EXPECT_NEAR(rate(.02, 2, 3, 10, 1, 4), .015, 1e-9);
}

TEST(LearningRateSchedule, MultipliesFromItsStartToItsEnd) {  // row 39
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.input_shape = {1}})});
  net.compile({.optimizer = SGD({.lr = .5}), .loss = itself});
  const Tensor x = floats({1}, {1});
  const LearningRateScheduleCallback schedule(
      {.initial_lr = .5, .multiplier = .1, .start_epoch = 2, .end_epoch = 4});
  EXPECT_THAT(net.fit(x, x, {.epochs = 5, .verbose = 0, .callbacks = {schedule}})["lr"],
              Pointwise(DoubleNear(1e-7), {.5, .5, .5, .05, .05}));
  EXPECT_THAT([] { LearningRateScheduleCallback({.multiplier = .1}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Parameter `initial_lr` is required")));
}

TEST(LearningRateSchedule, CorrectsTheMomentumOfOneBatch) {  // row 40
  LearningRateScheduleCallback schedule({.initial_lr = .1});
  const Told told(schedule, SGD({.lr = .4, .momentum = .9}));
  Logs logs;
  schedule.on_epoch_begin(0, logs);
  schedule.on_batch_begin(0, logs);
  EXPECT_NEAR(told.net().optimizer().momentum().get(), .225, 1e-6);
  schedule.on_batch_end(0, logs);
  schedule.on_batch_begin(1, logs);
  EXPECT_NEAR(told.net().optimizer().momentum().get(), .9, 1e-6);
}

}  // namespace
}  // namespace kolo::keras
