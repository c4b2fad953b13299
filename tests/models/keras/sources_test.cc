// Training, evaluation and prediction on sources of batches, and samples that ranks share out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/models/data.h>
#include <kolo/models/keras/model.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Output itself(const Scope& s, Output, Output p) { return reduce_sum(s, p, {.axes = {1}}); }

// p = x, and the loss is p: a batch's loss is the mean of its samples.
Sequential mirror(Workspace& ws) {
  Sequential net(ws, {Dense(1, {.use_bias = false, .kernel_initializer = "ones", .input_shape = {1}})});
  net.compile({.optimizer = SGD({.lr = 0}), .loss = itself});
  return net;
}

// Batches of one sample each: 0, 1, 2, …
struct Counting : Source {
  explicit Counting(std::int64_t batches) : left(batches) {}
  std::int64_t left;
  float number = 0;
  bool next(Samples& batch) override {
    if (left-- <= 0) return false;
    batch = {.x = floats({1}, {number}), .y = floats({1}, {0})};
    ++number;
    return true;
  }
};

TEST(FitOnASource, GoesOnWhereTheEpochBeforeHasEnded) {
  Workspace ws;
  const Sequential net = mirror(ws);
  Counting source(100);
  EXPECT_THAT(net.fit(source, {.epochs = 3, .verbose = 0, .steps_per_epoch = 4})["loss"],
              ElementsAre(1.5, 5.5, 9.5));
  EXPECT_EQ(source.left, 88);
}

TEST(FitOnASource, StopsWhereItEnds) {
  Workspace ws;
  const Sequential net = mirror(ws);
  Counting source(6);
  ::testing::internal::CaptureStderr();
  const History history = net.fit(source, {.epochs = 5, .verbose = 0, .steps_per_epoch = 4});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("Your dataset ran out of data"));
  EXPECT_THAT(history["loss"], ElementsAre(1.5, 4.5));
}

TEST(FitOnASource, ValidatesOnAnother) {
  Workspace ws;
  const Sequential net = mirror(ws);
  Counting source(9), validation(9);
  EXPECT_THAT(net.fit(source, {.epochs = 2,
                               .verbose = 0,
                               .steps_per_epoch = 1,
                               .validation_steps = 3,
                               .validation_source = &validation})["val_loss"],
              ElementsAre(1, 4));
}

TEST(FitOnASource, SaysWhatDoesNotGoWithIt) {
  Workspace ws;
  const Sequential net = mirror(ws);
  Counting source(9);
  const Tensor x = floats({1}, {1});
  const auto refuses = [&](const FitOptions& options, const char* text) {
    EXPECT_THAT([&] { net.fit(source, options); }, ThrowsMessage<InvalidArgumentError>(HasSubstr(text)));
  };
  refuses({}, "you should specify the `steps_per_epoch` argument");
  refuses({.validation_split = .5, .steps_per_epoch = 1}, "validation_split");
  refuses({.class_weight = {{0, 1}}, .steps_per_epoch = 1}, "class_weight");
  refuses({.sample_weight = x, .steps_per_epoch = 1}, "sample_weight");
  refuses({.steps_per_epoch = 1, .validation_source = &source}, "Must specify `validation_steps`");
  refuses({.steps_per_epoch = 1, .validation_steps = 1},
          "Can only use `validation_steps` when doing step-wise training");
  EXPECT_THAT([&] { net.fit(x, x, {.steps_per_epoch = 1}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("If steps_per_epoch is set, the `batch_size` must be None.")));
}

TEST(FitOnASource, TakesBatchesOfDigits) {
  Workspace ws;
  const Sequential net(ws, {Flatten({.input_shape = {1, 28, 28}}), Dense(10, {.activation = "softmax"})});
  net.compile({.optimizer = "sgd", .loss = "sparse_categorical_crossentropy"});
  models::Batches batches(models::generated_digits(1, 0, 32), {.batch_size = 8});
  EXPECT_EQ(net.fit(batches, {.epochs = 2, .verbose = 0, .steps_per_epoch = 3}).epoch.size(), 2U);
  EXPECT_EQ(batches.position().sample, 16);
}

TEST(EvaluateASource, ToItsEndOrForSomeSteps) {
  Workspace ws;
  const Sequential net = mirror(ws);
  Counting whole(5), some(5);
  EXPECT_THAT(net.evaluate(whole, {.verbose = 0}), ElementsAre(2));
  EXPECT_THAT(net.evaluate(some, {.verbose = 0, .steps = 2}), ElementsAre(.5));
}

TEST(PredictASource, PutsItsRowsBehindOneAnother) {
  Workspace ws;
  const Sequential net = mirror(ws);
  Counting source(5);
  EXPECT_THAT(elements(net.predict(source, {.steps = 3})[0]), ElementsAre(0, 1, 2));
}

TEST(Shard, DropsIncompleteBatches) {
  Workspace ws;
  const Sequential net = mirror(ws);
  Tensor x(DType::f32, {10});
  std::iota(x.data<float>(), x.data<float>() + 10, 0.F);
  net.fit(x, x, {.batch_size = 4, .verbose = 0, .shard = true});
  EXPECT_EQ(net.optimizer().iterations().get(), 2);
  EXPECT_THAT([&] { net.fit(x, x, {.batch_size = 11, .verbose = 0, .shard = true}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("10 samples are fewer than one batch of 11")));
}

}  // namespace
}  // namespace kolo::keras
