// Trainings that go on where a checkpoint has them, bit by bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <kolo/core/base/error.h>
#include <kolo/core/base/stop_signal.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/models/keras/callbacks.h>
#include <kolo/models/keras/checkpoint_callback.h>
#include <kolo/models/keras/model.h>
#include <kolo/models/keras/normalization_layers.h>
#include <kolo/optimizer/rules.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor numbers(const Shape& shape, int stride) {
  Tensor tensor(DType::f32, shape);
  for (std::int64_t i = 0; i < tensor.elements(); ++i)
    tensor.data<float>()[i] = static_cast<float>(i * stride % 101) / 50 - 1;
  return tensor;
}
const Tensor kX = numbers({50, 4}, 37), kY = numbers({50, 1}, 11);

struct StopAt : Callback {
  std::int64_t epoch, batch;
  bool by_signal;
  StopAt(std::int64_t in_epoch, std::int64_t at_batch, bool signal)
      : epoch(in_epoch), batch(at_batch), by_signal(signal) {}
  std::int64_t now = 0;
  void on_epoch_begin(std::int64_t e, Logs&) override { now = e; }
  void on_batch_end(std::int64_t b, Logs&) override {
    if (now != epoch || b != batch) return;
    if (by_signal) raise(SIGUSR1);
    else model().set_stop_training(true);
  }
};

class Resume : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("keras_resume_" + std::to_string(getpid()));
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    clear_stop_signal();
  }

  struct Result {
    std::vector<std::vector<float>> weights;
    History history;
    double lr;
  };
  // Dropout, a rate that falls, and batch normalization: what a checkpoint might forget.
  Result train(const std::vector<AnyCallback>& more, bool resume) {
    Workspace ws;
    const Sequential net(ws, {Dense(8, {.activation = "relu", .input_shape = {4}}), BatchNormalization(),
                              Dropout(.3), Dense(1)});
    net.compile({.optimizer = Adam({.lr = .01}), .loss = "mse", .metrics = {"mae"}});
    std::vector<AnyCallback> callbacks = {
        ReduceLROnPlateau({.monitor = "loss", .factor = .5, .patience = 1, .min_delta = .05})};
    callbacks.push_back(more.empty() ? AnyCallback(LambdaCallback({})) : more[0]);
    callbacks.push_back(CheckpointCallback(folder_.string(), {.save_steps = 3}));
    Result result;
    result.history = net.fit(
        kX, kY, {.batch_size = 8, .epochs = 6, .verbose = 0, .callbacks = callbacks, .resume = resume});
    for (const Tensor& weight : net.get_weights()) result.weights.push_back(elements(weight));
    result.lr = net.optimizer().lr().get();
    return result;
  }

  void goes_on_after(const AnyCallback& stop, bool signal) {
    const Result whole = train({}, false);
    std::filesystem::remove_all(folder_);
    train({stop}, false);
    if (signal) clear_stop_signal();
    const Result rest = train({}, true);
    EXPECT_EQ(rest.weights, whole.weights);
    EXPECT_EQ(rest.lr, whole.lr);
    EXPECT_EQ(rest.history["loss"].back(), whole.history["loss"].back());
    EXPECT_EQ(rest.history["loss"].size(), 6U - static_cast<std::size_t>(rest.history.epoch[0]));
  }

  std::filesystem::path folder_;
};

TEST_F(Resume, GoesOnInTheMiddleOfAnEpoch) { goes_on_after(std::make_shared<StopAt>(3, 4, false), false); }
TEST_F(Resume, GoesOnAtAnEpochsEnd) { goes_on_after(std::make_shared<StopAt>(2, 6, false), false); }
TEST_F(Resume, GoesOnAfterASignal) { goes_on_after(std::make_shared<StopAt>(1, 2, true), true); }

// Which batches of which epochs are trained, and the mean that an epoch's end tells of the numbers.
struct Batchwise : Callback {
  std::vector<std::int64_t> batches = {};
  void on_batch_end(std::int64_t batch, Logs&) override { batches.push_back(batch); }
};

TEST_F(Resume, BeginsAnEpochAnewWhereTheSamplesHaveChangedInItsMiddle) {
  const auto fit = [&](std::int64_t samples, const AnyCallback& watch, bool resume) {
    Workspace ws;
    const Sequential net(ws, {Dense(1, {.input_shape = {4}})});
    net.compile({.optimizer = SGD({.lr = 0}), .loss = "mse"});
    return net.fit(numbers({samples, 4}, 37), numbers({samples, 1}, 11),
                   {.batch_size = 8,
                    .epochs = 2,
                    .verbose = 0,
                    .callbacks = {watch, CheckpointCallback(folder_.string(), {.save_steps = 100})},
                    .resume = resume});
  };
  for (const std::int64_t samples : {20, 40, 72}) {
    std::filesystem::remove_all(folder_);
    fit(50, std::make_shared<StopAt>(1, 3, false), false);
    const auto watch = std::make_shared<Batchwise>();
    testing::internal::CaptureStderr();
    const History rest = fit(samples, watch, true);
    EXPECT_THAT(
        testing::internal::GetCapturedStderr(),
        HasSubstr("training samples, and were 50 when the training stopped in the middle of epoch 2"));
    EXPECT_EQ(std::ssize(watch->batches), (samples + 7) / 8) << samples;
    EXPECT_EQ(watch->batches.front(), 0);
    // With a rate of 0 the mean over an epoch is that of all samples, whatever was summed before.
    std::filesystem::remove_all(folder_);
    const History whole = fit(samples, std::make_shared<Batchwise>(), false);
    EXPECT_NEAR(rest["loss"].back(), whole["loss"].back(), 1e-6);
  }
}

TEST_F(Resume, StartsWhereNothingIsThere) {
  const Result first = train({}, true);
  EXPECT_EQ(first.history.epoch.size(), 6U);
}

TEST_F(Resume, HasNothingLeftToDoAtTheEnd) {
  const Result whole = train({}, false), rest = train({}, true);
  EXPECT_TRUE(rest.history.epoch.empty());
  EXPECT_EQ(rest.weights, whole.weights);
}

TEST_F(Resume, SaysWhatItNeeds) {
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.input_shape = {4}})});
  net.compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_THAT([&] { net.fit(kX, kY, {.verbose = 0, .resume = true}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("there is no CheckpointCallback")));
  EXPECT_THROW(CheckpointCallback("x", {}), InvalidArgumentError);
}

// One epoch of one step each: what was trained is weights and slots alone.
std::vector<float> weights_after(Sequential& net, const AnyCallback& checkpoints, std::int64_t epochs,
                                 bool resume) {
  net.fit(kX, kY,
          {.batch_size = 50, .epochs = epochs, .verbose = 0, .callbacks = {checkpoints}, .resume = resume});
  return elements(net.get_weights()[0]);
}

TEST_F(Resume, KeepsTheSlotsOfAnOptimizerThatIsCompiledAgain) {
  const auto compiled_twice = [](Workspace& ws) {
    Sequential net(ws, {Dense(1, {.input_shape = {4}})});
    const Optimizer adam(std::make_shared<kolo::AdamOptimizer>(.05F));
    net.compile({.optimizer = adam, .loss = "mse"});
    net.compile({.optimizer = adam, .loss = "mae"});
    return net;
  };
  const AnyCallback checkpoints = CheckpointCallback(folder_.string(), {.save_epochs = 1});
  Workspace one, two, three;
  Sequential whole = compiled_twice(one), first = compiled_twice(two), second = compiled_twice(three);
  const auto expected = weights_after(whole, LambdaCallback({}), 5, false);
  weights_after(first, checkpoints, 3, false);
  EXPECT_EQ(weights_after(second, checkpoints, 5, true), expected);
}

TEST_F(Resume, HasTheBestWeightsAsTensors) {
  const auto run = [&](bool resume, std::int64_t patience) {
    Workspace ws;
    const Sequential net(ws, {Dense(1, {.input_shape = {4}})});
    net.compile({.optimizer = SGD({.lr = 5}), .loss = "mse"});  // which makes it worse in every epoch
    const History history = net.fit(
        kX, kY,
        {.batch_size = 50,
         .epochs = 9,
         .verbose = 0,
         .callbacks = {EarlyStopping({.monitor = "loss", .patience = patience, .restore_best_weights = true}),
                       CheckpointCallback(folder_.string(), {.save_epochs = 1})},
         .resume = resume});
    return std::pair(history.epoch, elements(net.get_weights()[0]));
  };
  const auto [epochs, best] = run(false, 2);
  EXPECT_THAT(epochs, ElementsAre(0, 1, 2));
  const auto newest = latest_checkpoint(folder_.string());
  ASSERT_TRUE(newest);
  CheckpointReader reader(*newest);
  const Tensor kept(DType::f32, {4, 1});
  reader.read("keras_callbacks/0/best_weights/0", kept);
  EXPECT_EQ(elements(kept), best);
  EXPECT_LT(std::filesystem::file_size(checkpoint_index_path(*newest)), 4096U);

  // It was ended, and stays so at every start; more patience lets it go on.
  for (int start = 0; start < 2; ++start) {
    const auto [more, weights] = run(true, 2);
    EXPECT_TRUE(more.empty());
    EXPECT_EQ(weights, best);
  }
  EXPECT_THAT(run(true, 3).first, ElementsAre(3));
}

TEST_F(Resume, IsNotAskedForFromACallbackOfTheSameFit) {
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.input_shape = {4}})});
  net.compile({.optimizer = "sgd", .loss = "mse"});
  const AnyCallback again = LambdaCallback(
      {.on_epoch_end = [&](std::int64_t, Logs&) { net.fit(kX, kY, {.epochs = 1, .verbose = 0}); }});
  const AnyCallback checkpoints = CheckpointCallback(folder_.string(), {.save_epochs = 1});
  EXPECT_THAT(
      [&] {
        net.fit(kX, kY, {.epochs = 2, .verbose = 0, .callbacks = {again, checkpoints}});
      },
      ThrowsMessage<FailedPreconditionError>(HasSubstr("a fit of the same model is under way")));
}

TEST_F(Resume, CompilesNothingInACallbackOfTheSameFit) {
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.input_shape = {4}})});
  net.compile({.optimizer = "sgd", .loss = "mse"});
  const AnyCallback again = LambdaCallback(
      {.on_epoch_end = [&](std::int64_t, Logs&) { net.compile({.optimizer = "adam", .loss = "mse"}); }});
  EXPECT_THAT([&] { net.fit(kX, kY, {.epochs = 2, .verbose = 0, .callbacks = {again}}); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("compile: a fit of the same model")));
  net.compile({.optimizer = "adam", .loss = "mse"});
  net.fit(kX, kY, {.epochs = 1, .verbose = 0});
}

TEST_F(Resume, KeepsWhatEarlyStoppingHasSeen) {
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.input_shape = {4}})});
  net.compile({.optimizer = "sgd", .loss = "mse"});
  EarlyStopping before({.monitor = "loss", .patience = 2, .restore_best_weights = true}), after = before;
  before.attach(net, {});
  after.attach(net, {});
  Logs none, good(Logs::Entries{{"loss", 1}}), bad(Logs::Entries{{"loss", 2}});
  before.on_train_begin(none);
  before.on_epoch_end(0, good);
  const Tensor best = net.get_weights()[0];
  before.on_epoch_end(1, bad);
  after.on_train_begin(none);
  after.set_state_tensors(before.state_tensors());
  after.set_state(before.state());
  net.set_weights({numbers({4, 1}, 3), floats({1}, {5})});
  after.on_epoch_end(2, bad);
  EXPECT_TRUE(net.stop_training());
  EXPECT_EQ(elements(net.get_weights()[0]), elements(best));
}

}  // namespace
}  // namespace kolo::keras
