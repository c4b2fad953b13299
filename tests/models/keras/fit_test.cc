#include <kolo/models/keras/fit.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/models/batches.h>
#include <kolo/models/keras/model.h>
#include <kolo/models/keras/progress_internal.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;

Output itself(const Scope& s, Output, Output p) { return reduce_sum(s, p, {.axes = {1}}); }

// p = x, and the loss is p: a batch's loss is the mean of its samples.
Sequential mirror(Workspace& ws, double lr = 0) {
  Sequential net(ws, {Dense(1, {.use_bias = false, .kernel_initializer = "ones", .input_shape = {1}})});
  net.compile({.optimizer = SGD({.lr = lr}), .loss = itself});
  return net;
}

Tensor numbers(std::int64_t n) {
  Tensor x(DType::f32, {n});
  std::iota(x.data<float>(), x.data<float>() + n, 0.F);
  return x;
}

// What fit told it.
struct Notes : Callback {
  std::vector<std::string> calls;
  std::vector<double> sizes, losses;
  std::int64_t stop_at = -1;
  void on_train_begin(Logs&) override { calls.emplace_back("train_begin"); }
  void on_train_end(Logs&) override { calls.emplace_back("train_end"); }
  void on_epoch_begin(std::int64_t epoch, Logs&) override {
    calls.push_back("epoch_begin " + std::to_string(epoch));
  }
  void on_epoch_end(std::int64_t epoch, Logs& logs) override {
    calls.push_back("epoch_end " + std::to_string(epoch) + ' ' + logs.names());
  }
  void on_batch_end(std::int64_t batch, Logs& logs) override {
    sizes.push_back(*logs.find("size"));
    losses.push_back(*logs.find("loss"));
    if (batch == stop_at) model().set_stop_training(true);
  }
};

TEST(Fit, WeighsBatchesByTheirSize) {  // row 14
  Workspace ws;
  const Sequential net = mirror(ws);
  Tensor x(DType::f32, {50});
  for (int i = 0; i < 50; ++i) x.data<float>()[i] = i < 16 ? .8F : i < 32 ? .5F : i < 48 ? .6F : 2.F;
  const auto notes = std::make_shared<Notes>();
  const History history =
      net.fit(x, x, {.batch_size = 16, .verbose = 0, .callbacks = {notes}, .shuffle = false});
  EXPECT_THAT(notes->sizes, ElementsAre(16, 16, 16, 2));
  EXPECT_THAT(history["loss"], Pointwise(DoubleNear(1e-6), {.688}));
  EXPECT_THAT(notes->calls, ElementsAre("train_begin", "epoch_begin 0", "epoch_end 0 loss", "train_end"));
}

TEST(Fit, SplitsTheLastSamplesOffWithTheirWeights) {  // row 15
  Workspace ws;
  const Sequential net = mirror(ws);
  const Tensor x = numbers(90);
  Tensor y(DType::f32, {90});
  for (int i = 0; i < 90; ++i) y.data<float>()[i] = i % 2 == 0 ? 0.F : 1.F;
  const auto notes = std::make_shared<Notes>();
  const auto weighted = net.fit(x, y,
                                {.batch_size = 100,
                                 .verbose = 0,
                                 .callbacks = {notes},
                                 .validation_split = .3,
                                 .class_weight = {{0, 1}, {1, 3}}});
  EXPECT_THAT(notes->sizes, ElementsAre(62));
  double plain = 0, by_class = 0;
  for (int i = 62; i < 90; ++i) {
    plain += i / 28.;
    by_class += i * (i % 2 == 0 ? 1 : 3) / 28.;
  }
  EXPECT_NEAR(weighted["val_loss"][0], by_class, 1e-3);
  const auto apart = net.fit(x.rows(0, 62), y.rows(0, 62),
                             {.verbose = 0,
                              .validation_data = Samples{.x = x.rows(62, 90), .y = y.rows(62, 90)},
                              .class_weight = {{0, 1}, {1, 3}}});
  EXPECT_NEAR(apart["val_loss"][0], plain, 1e-3);
}

TEST(Fit, WeighsSamplesByTheirClass) {  // row 11
  Workspace ws;
  const Sequential net = mirror(ws);
  const Tensor x = floats({3}, {1, 2, 4}), y = floats({3}, {0, 1, 1});
  EXPECT_NEAR(net.fit(x, y, {.verbose = 0, .class_weight = {{0, 1}, {1, .5}}})["loss"][0], 4. / 3, 1e-6);
  EXPECT_THAT(
      [&] {
        net.fit(x, y, {.class_weight = {{0, 1}}});
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("The classes {1} exist in the data but not in `class_weight`.")));
}

// Row 16: batches of one sample tell the order, batches of four are recognised by their means.
TEST(Fit, DrawsTheOrderOfEachEpoch) {
  Workspace ws;
  const Sequential net = mirror(ws);
  const Tensor x = numbers(10);
  const auto each = std::make_shared<Notes>(), batches = std::make_shared<Notes>();
  net.fit(x, x, {.batch_size = 1, .epochs = 2, .verbose = 0, .callbacks = {each}});
  std::vector<double> expected;
  for (const std::int64_t epoch : {0, 1}) {
    std::vector<std::int64_t> order;
    models::shuffle_samples(1, epoch, 10, order);
    expected.insert(expected.end(), order.begin(), order.end());
  }
  EXPECT_EQ(each->losses, expected);
  net.fit(x, x, {.batch_size = 4, .epochs = 8, .verbose = 0, .callbacks = {batches}, .shuffle = "batch"});
  std::set<std::vector<double>> seen;
  for (std::size_t e = 0; e < 8; ++e)
    seen.insert({batches->losses.begin() + 3 * e, batches->losses.begin() + 3 * e + 3});
  EXPECT_EQ(seen, (std::set<std::vector<double>>{{1.5, 5.5, 8.5}, {5.5, 1.5, 8.5}}));
}

TEST(Fit, RunsTheEpochsFromTheFirstOne) {
  Workspace ws;
  const Sequential net = mirror(ws);
  const auto notes = std::make_shared<Notes>();
  const Tensor x = numbers(2);
  EXPECT_THAT(net.fit(x, x, {.epochs = 5, .verbose = 0, .callbacks = {notes}, .initial_epoch = 2}).epoch,
              ElementsAre(2, 3, 4));
  EXPECT_EQ(net.optimizer().iterations().get(), 3);
  notes->calls.clear();
  net.fit(x, x, {.epochs = 2, .verbose = 0, .callbacks = {notes}, .initial_epoch = 2});
  EXPECT_THAT(notes->calls, ElementsAre("train_begin", "train_end"));
}

TEST(Fit, StopsBehindTheBatchThatAskedForIt) {
  Workspace ws;
  const Sequential net = mirror(ws);
  const auto notes = std::make_shared<Notes>();
  notes->stop_at = 1;
  const Tensor x = numbers(5);
  net.fit(x, x,
          {.batch_size = 1,
           .epochs = 3,
           .verbose = 0,
           .callbacks = {notes},
           .validation_data = Samples{.x = x, .y = x}});
  EXPECT_EQ(notes->sizes.size(), 2U);
  EXPECT_THAT(notes->calls, ElementsAre("train_begin", "epoch_begin 0", "epoch_end 0 loss", "train_end"));
}

TEST(Fit, LearnsALine) {
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.input_shape = {1}})});
  net.compile({.optimizer = SGD({.lr = .1}), .loss = "mse", .metrics = {"mae"}});
  const Tensor x = floats({4}, {-1, 0, 1, 2}), y = floats({4}, {-1, 1, 3, 5});
  const History history = net.fit(x, y, {.batch_size = 2, .epochs = 200, .verbose = 0});
  EXPECT_LT(history["loss"].back(), 1e-6);
  EXPECT_NEAR(net.predict(floats({1}, {10}))[0].value<float>(), 21, .01);
  EXPECT_THAT(net.evaluate(x, y, {.verbose = 0}), Pointwise(DoubleNear(1e-3), {0., 0.}));
}

TEST(Fit, RefusesNumbersThatAreNoneWithTheFirstPlace) {
  Workspace ws;
  const Sequential net = mirror(ws);
  const Tensor x = numbers(4).reshaped({4, 1}), y = numbers(4).reshaped({4, 1});
  const Tensor bad = numbers(4).reshaped({4, 1});
  bad.data<float>()[2] = std::nanf("");
  const Tensor large = Tensor::of<double>({4, 1}, {0, 1e300, 2, 3});
  const auto of = [](const char* text) { return ThrowsMessage<InvalidArgumentError>(HasSubstr(text)); };
  const auto input = of("Error when checking input"), first = of("the first one x[2,0], nan; all must be");
  EXPECT_THAT([&] { net.fit(bad, y, {.epochs = 1, .verbose = 0}); }, AllOf(input, first));
  EXPECT_THAT([&] { net.fit(x, bad, {.epochs = 1, .verbose = 0}); },
              AllOf(of("Error when checking target"), first));
  EXPECT_THAT([&] { net.evaluate(bad, y); }, first);
  EXPECT_THAT([&] { net.predict(bad); }, first);
  EXPECT_THAT([&] { net.predict(large); },
              of("1 of 4 numbers are NaN or infinite as f32, the first one x[1,0], 1e+300"));
}

TEST(Predict, KeepsTheOrderOfTheSamples) {
  Workspace ws;
  const Sequential net = mirror(ws);
  EXPECT_THAT(elements(net.predict(numbers(5), {.batch_size = 2})[0]), ElementsAre(0, 1, 2, 3, 4));
  const Tensor classes = net.predict_classes(floats({3}, {.4F, .6F, .5F}));
  EXPECT_THAT(std::vector<std::int64_t>(classes.data<std::int64_t>(), classes.data<std::int64_t>() + 3),
              ElementsAre(0, 1, 0));
}

#ifndef __SANITIZE_ADDRESS__  // which keeps freed memory for a while
std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * 4096;
}

// 4 MB of samples, batches of another size each epoch's end, validation and prediction: whatever was kept of
// each epoch would be seen after 40.
TEST(Fit, NeedsNoMoreMemoryInTheLastEpochsThanInTheFirst) {
  Workspace ws;
  const Sequential net(ws, {Dense(64, {.activation = "relu", .input_shape = {100}}), Dense(1)});
  net.compile({.optimizer = "adam", .loss = "mse", .metrics = {"mae"}});
  const Tensor x = Tensor::zeros(DType::f32, {10000, 100}), y = Tensor::zeros(DType::f32, {10000, 1});
  const auto epochs = [&](std::int64_t count) {
    net.fit(x, y, {.batch_size = 96, .epochs = count, .verbose = 0, .validation_split = .1});
    net.predict(x, {.batch_size = 96});
    return resident_bytes();
  };
  const std::int64_t before = epochs(8);
  EXPECT_LT(static_cast<double>(epochs(40)), 1.02 * static_cast<double>(before));
}
#endif

// Rows 17 to 19.
TEST(Progress, DrawsBarsTimesAndValues) {
  EXPECT_EQ(detail::bar_text(40, 160), " 40/160 [======>.......................]");
  EXPECT_EQ(detail::bar_text(96, 1000), "  96/1000 [=>............................]");
  EXPECT_EQ(detail::bar_text(1, 64), " 1/64 [..............................]");
  EXPECT_EQ(detail::bar_text(8, 8), "8/8 [==============================]");
  EXPECT_EQ(detail::eta_text(3725), "1:02:05");
  EXPECT_EQ(detail::eta_text(83.9), "1:23");
  EXPECT_EQ(detail::eta_text(60), "60s");
  EXPECT_EQ(detail::spent_text(2.4, 1000, "sample"), "2s 2ms/sample");
  EXPECT_EQ(detail::value_text(.00042), "4.2000e-04");
  EXPECT_EQ(detail::value_text(.25), "0.2500");
  EXPECT_EQ(detail::value_text(1e-3), "1.0000e-03");
  EXPECT_EQ(detail::value_text(-2), "-2.0000");
}

TEST(Progress, WritesTheLastStateOfEachEpochWhereItIsNoTerminal) {
  Workspace ws;
  const Sequential net = mirror(ws);
  const Tensor x = floats({2}, {1, 2});
  ::testing::internal::CaptureStdout();
  net.fit(x, x, {.batch_size = 1, .epochs = 2, .validation_data = Samples{.x = x, .y = x}});
  EXPECT_THAT(
      ::testing::internal::GetCapturedStdout(),
      ::testing::MatchesRegex(
          "Train on 2 samples, validate on 2 samples\nEpoch 1/2\n2/2 .==============================. - "
          "0s [0-9]+[mu]s/sample - loss: 1.5000 - val_loss: 1.5000\nEpoch 2/2\n.*\n"));
  ::testing::internal::CaptureStdout();
  net.fit(x, x, {.verbose = 0});
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), IsEmpty());
}

}  // namespace
}  // namespace kolo::keras
