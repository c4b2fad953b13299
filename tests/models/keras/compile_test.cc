#include <kolo/models/keras/compile.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/models/keras/merge_layers.h>
#include <kolo/models/keras/model.h>
#include <kolo/models/keras/normalization_layers.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;

Output itself(const Scope& s, Output, Output p) { return reduce_sum(s, p, {.axes = {1}}); }

Model two_outputs(Workspace& ws, const DenseOptions& a = {}) {
  const KerasTensor x = Input(ws, {2});
  DenseOptions named = a;
  named.name = "a";
  return {{x},
          {Dense(1, named)(x), Dense(1, {.use_bias = false, .kernel_initializer = "ones", .name = "b"})(x)}};
}

TEST(Compile, WeighsSamples) {  // row 10
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.use_bias = false, .kernel_initializer = "ones", .input_shape = {1}})});
  net.compile({.loss = itself, .weighted_metrics = {Metric("same", itself)}});
  EXPECT_THAT(net.metrics_names(), ElementsAre("loss", "weighted_same"));
  const Tensor x = floats({4}, {1, 2, 3, 4}), y = floats({4}, {0, 0, 0, 0});
  EXPECT_THAT(net.test_on_batch(x, y, floats({4}, {1, 0, 2, 1})),
              Pointwise(::testing::DoubleNear(1e-6), {11. / 3, 11. / 3}));
  EXPECT_THAT(net.test_on_batch(x, y, floats({4}, {0, 0, 0, 0})), ElementsAre(0, 0));
}

TEST(Compile, AddsLossesByTheirWeightsAndRegularizers) {  // row 12
  Workspace ws;
  const Model net = two_outputs(ws, {.use_bias = false, .kernel_regularizer = l2(.1)});
  net.get_layer("a").set_weights({floats({2, 1}, {1, -2})});
  net.compile({.loss = itself, .loss_weights = {{"b", .25}}});
  // a = x1 − 2 x2 = .6, b = x1 + x2 = 2.
  const Tensor x = floats({1, 2}, {4.6F / 3, 1.4F / 3}), none = floats({1, 1}, {0});
  EXPECT_THAT(net.test_on_batch(x, {none, none}), Pointwise(::testing::DoubleNear(1e-5), {1.6, .6, 2.}));
}

TEST(Compile, ChoosesThePrecisionOfAWorkspaceThatHasNotComputedYet) {
  Workspace ws;
  const Model net = two_outputs(ws);
  net.compile({.loss = "mse", .precision = Precision::tf32});
  EXPECT_EQ(ws.session().config().graph_options.precision, Precision::tf32);
  net.compile({.loss = "mse", .precision = Precision::tf32});
  EXPECT_THAT([&] { net.compile({.loss = "mse", .precision = Precision::f32}); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr(
                  "precision f32 was asked for, but this workspace's session computes in tf32 already")));
  net.compile({.loss = "mse"});
}

TEST(Compile, NamesLossesAndMetrics) {  // row 13
  Workspace ws;
  const Model net = two_outputs(ws);
  net.compile({.loss = "mse", .metrics = {"accuracy", "mae"}});
  EXPECT_THAT(net.metrics_names(), ElementsAre("loss", "a_loss", "b_loss", "a_acc", "a_mean_absolute_error",
                                               "b_acc", "b_mean_absolute_error"));
  net.compile({.loss = {{"a", "mse"}}, .metrics = {"mae", "mae"}});
  EXPECT_THAT(net.metrics_names(),
              ElementsAre("loss", "a_loss", "a_mean_absolute_error", "a_mean_absolute_error_1"));
}

TEST(Compile, TakesMetricsByTheOutputsName) {
  Workspace ws;
  const Model net = two_outputs(ws);
  net.compile({.loss = "mse", .metrics = {"mae"}, .metrics_by_output = {{"b", {"accuracy"}}}});
  EXPECT_THAT(net.metrics_names(), ElementsAre("loss", "a_loss", "b_loss", "a_mean_absolute_error",
                                               "b_mean_absolute_error", "b_acc"));
  EXPECT_THAT(
      [&] {
        net.compile({.loss = "mse", .metrics_by_output = {{"c", {"mae"}}}});
      },
      ::testing::ThrowsMessage<InvalidArgumentError>(
          HasSubstr("Unknown entry in metrics dictionary: \"c\"")));
}

TEST(Compile, SaysWhatIsWrongWithItsLosses) {
  Workspace ws;
  const Model net = two_outputs(ws);
  EXPECT_THAT(
      [&] {
        net.compile({.loss = {{"c", "mse"}}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr(
          "Unknown entry in loss dictionary: \"c\". Only expected the following keys: ['a', 'b']")));
  EXPECT_THAT(
      [&] {
        net.compile({.loss = "mse", .loss_weights = {{"c", 1}}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("Unknown entry in loss_weights dictionary: \"c\".")));
  EXPECT_THAT(
      [&] {
        net.compile({.loss = {"mse", "mse", "mse"}});
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("When passing a list as loss, it should have one entry per model outputs.")));
  EXPECT_THAT([&] { net.compile({}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("The model cannot be compiled because it has no loss to optimize.")));
  EXPECT_THAT(
      [&] {
        net.train_on_batch(floats({1, 2}, {1, 1}), floats({1}, {1}));
      },
      ThrowsMessage<FailedPreconditionError>(
          HasSubstr("You must compile a model before training/testing. Use "
                    "`model.compile(optimizer, loss)`.")));
}

// Row 31.
TEST(BatchNormalization, MovesItsAveragesInTraining) {
  Workspace ws;
  const Sequential net(ws, {BatchNormalization({.input_shape = {1}})});
  net.compile({.optimizer = SGD({.lr = 0}), .loss = "mse"});
  const Tensor x = floats({4}, {1, 2, 6, 7});
  // (1 − 4)/√6.501 = −1.17660631, (2 − 4)/√6.501 = −.784404204: their mean square is 6.5/6.501.
  EXPECT_NEAR(net.train_on_batch(x, floats({4}, {0, 0, 0, 0}))[0], 6.5 / 6.501, 1e-5);
  const std::vector<Tensor> weights = net.get_weights();
  EXPECT_NEAR(weights[2].value<float>(), .04, 1e-6);
  EXPECT_NEAR(weights[3].value<float>(), 1.07666667, 1e-5);
  EXPECT_NEAR(net.predict_on_batch(floats({1}, {4}))[0].value<float>(), 3.8146, 1e-3);
}

// Row 31, output by output: the mean of t·p, with a target that picks one of them.
TEST(BatchNormalization, NormalisesByTheBatchInTraining) {
  const std::vector<float> expected = {-1.17660631F, -.784404204F, .784404204F, 1.17660631F};
  for (std::size_t i = 0; i < 4; ++i) {
    Workspace ws;
    const Sequential net(ws, {BatchNormalization({.input_shape = {1}})});
    net.compile({.optimizer = SGD({.lr = 0}), .loss = [](const Scope& s, Output t, Output p) {
                   return reduce_sum(s, mul(s, t, p), {.axes = {1}});
                 }});
    Tensor picks = Tensor::zeros(DType::f32, {4});
    picks.data<float>()[i] = 4;
    EXPECT_NEAR(net.train_on_batch(floats({4}, {1, 2, 6, 7}), picks)[0], expected[i], 2e-5);
  }
}

TEST(BatchNormalization, UsesItsAveragesWhereItIsFrozen) {
  Workspace ws;
  const Sequential net(ws, {BatchNormalization({.trainable = false, .input_shape = {1}})});
  net.compile({.loss = "mse"});
  EXPECT_NEAR(net.train_on_batch(floats({2}, {1, 3}), floats({2}, {0, 0}))[0], 5 / 1.001, 1e-4);
  EXPECT_EQ(net.get_weights()[2].value<float>(), 0);
}

TEST(Trainable, CountsAtTheNextCompile) {
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.use_bias = false, .kernel_initializer = "ones", .input_shape = {1}})});
  net.compile({.optimizer = SGD({.lr = 1}), .loss = itself});
  net.layers()[0].set_trainable(false);
  net.train_on_batch(floats({1}, {1}), floats({1}, {0}));
  EXPECT_EQ(net.get_weights()[0].value<float>(), 0);
  net.compile({.optimizer = SGD({.lr = 1}), .loss = itself});
  net.train_on_batch(floats({1}, {1}), floats({1}, {0}));
  EXPECT_EQ(net.get_weights()[0].value<float>(), 0);
}

TEST(Constraint, HoldsAfterEachUpdate) {
  Workspace ws;
  const Sequential net(ws, {Dense(1, {.use_bias = false,
                                      .kernel_initializer = "ones",
                                      .kernel_constraint = "non_neg",
                                      .input_shape = {2}})});
  net.compile({.optimizer = SGD({.lr = 1}), .loss = itself});
  net.train_on_batch(floats({1, 2}, {3, .25F}), floats({1}, {0}));
  EXPECT_THAT(elements(net.get_weights()[0]), ElementsAre(0, .75F));
}

TEST(Data, IsCheckedBeforeAnythingRuns) {  // row 47, and the numbers of samples
  Workspace ws;
  const Sequential net(ws, {Dense(10, {.activation = "softmax", .input_shape = {784}})});
  net.compile({.loss = "categorical_crossentropy"});
  const Tensor x = Tensor::zeros(DType::f32, {10, 784}), y = Tensor::zeros(DType::f32, {10, 10});
  EXPECT_THAT(
      [&] {
        net.train_on_batch(Tensor::zeros(DType::f32, {10, 100}), y);
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("Error when checking input: expected dense_1_input to have "
                    "shape (784,) but got array with shape (100,)")));
  EXPECT_THAT(
      [&] {
        net.train_on_batch(Tensor::zeros(DType::f32, {10, 1, 784}), y);
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("to have 2 dimensions, but got array with shape")));
  EXPECT_THAT(
      [&] {
        net.train_on_batch(x, Tensor::zeros(DType::f32, {10, 1}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("You are passing a target array of shape (10, 1)")));
  EXPECT_THAT(
      [&] {
        net.train_on_batch(x, Tensor::zeros(DType::f32, {10, 7}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("A target array with shape (10, 7) was passed for an "
                                                    "output of shape (None, 10) while using as loss "
                                                    "`categorical_crossentropy`.")));
  EXPECT_THAT(
      [&] {
        net.train_on_batch(x, Tensor::zeros(DType::f32, {9, 10}));
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("Input arrays should have the same number of samples as target arrays. Found 10 input "
                    "samples and 9 target samples.")));
}

TEST(Sequential, IsBuiltAtTheFirstData) {
  Workspace ws;
  const Sequential net(ws, {Dense(1)});
  net.compile({.loss = "mse"});
  net.train_on_batch(Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6}), Tensor::of<std::int32_t>({2}, {0, 1}));
  EXPECT_EQ(net.count_params(), 4);
}

}  // namespace
}  // namespace kolo::keras
