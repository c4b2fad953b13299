// Numbers of KERAS.md §12, computed there from Keras' formulas.
#include <kolo/models/keras/optimizers.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/models/keras/model.h>
#include <kolo/optimizer/rules.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using ::testing::AllOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;

// A model of one kernel w [n, 1] whose loss is x · w, so that x is the gradient.
class Slope {
 public:
  Slope(const Optimizer& optimizer, const Tensor& w)
      : n_(w.elements()), net_(ws_, {dense_ = Dense(1, {.use_bias = false, .input_shape = {n_}})}) {
    net_.set_weights({w.reshaped({n_, 1})});
    net_.compile({.optimizer = optimizer,
                  .loss = [](const Scope& s, Output, Output p) { return reduce_sum(s, p, {.axes = {1}}); }});
  }
  std::vector<float> step(const Tensor& gradient) {
    net_.train_on_batch(gradient.reshaped({1, n_}), floats({1, 1}, {0}));
    return elements(net_.get_weights()[0]);
  }

 private:
  Workspace ws_;
  std::int64_t n_;
  Dense dense_ = Dense(1);
  Sequential net_;
};

void expect_steps(const Optimizer& optimizer, const std::vector<std::vector<float>>& expected) {
  Slope slope(optimizer, floats({2}, {1, -2}));
  for (const auto& w : expected)
    EXPECT_THAT(slope.step(floats({2}, {.4F, -.1F})), Pointwise(FloatNear(4e-6F), w));
}

void expect_adam_steps(const Optimizer& optimizer, const std::vector<float>& expected) {
  Slope slope(optimizer, floats({1}, {1}));
  const std::vector<float> gradients = {1, .1F, .1F};
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(slope.step(floats({1}, {gradients[i]}))[0], expected[i], 2e-5 * expected[i])
        << optimizer.name();
}

TEST(SGD, KeepsTheRateInsideTheMomentum) {  // row 25
  expect_steps(SGD({.lr = .1, .momentum = .5, .decay = .5}),
               {{.96F, -1.99F}, {.913333333F, -1.97833333F}, {.87F, -1.9675F}});
}

TEST(SGD, LooksAheadWithNesterov) {
  // u = −.04, w += .5 u − .04; then u = −.06.
  expect_steps(SGD({.lr = .1, .momentum = .5, .nesterov = true}), {{.94F, -1.985F}, {.87F, -1.9675F}});
}

TEST(RMSprop, DividesByTheRootOfTheMeanSquare) {  // row 26
  expect_steps(RMSprop({.lr = .01, .decay = .1}),
               {{.968377248F, -1.96837732F}, {.947521285F, -1.9475214F}, {.931513402F, -1.93151354F}});
}

TEST(Adagrad, StartsFromZero) {
  // a = .16, .32: the first step is the rate, the second the rate ÷ √2.
  expect_steps(Adagrad({.lr = .1}), {{.9F, -1.9F}, {.8292893F, -1.8292893F}});
}

TEST(Adadelta, IsKolos) {
  // a = .05 · .16, u = √1e-7 / √(a + 1e-7) · .4.
  expect_steps(Adadelta(), {{1 - .00141420F, -2 + .00141351F}});
}

TEST(Adam, TakesTheLargestSquareWithAmsgrad) {  // row 27
  expect_adam_steps(Adam({.lr = .1, .beta_2 = .5}), {.900000014F, .809737619F, .714911783F});
  expect_adam_steps(Adam({.lr = .1, .beta_2 = .5, .amsgrad = true}), {.900000014F, .835539767F, .786725174F});
}

TEST(Adamax, DividesByTheLargestMagnitude) {  // row 28
  expect_adam_steps(Adamax({.lr = .1}), {.90000001F, .847315752F, .810341475F});
}

TEST(Nadam, FollowsItsScheduleOfMomenta) {  // row 29
  expect_steps(Nadam(),
               {{.997887097F, -1.9978871F}, {.996319729F, -1.99631973F}, {.994855295F, -1.9948553F}});
}

// Row 30, of two weights: gradients [3,4] and [0,12].
TEST(Clipping, ShortensEachGradientOrAllByOneFactor) {
  const auto moved = [](const SGDOptions& options) {
    Workspace ws;
    const KerasTensor a = Input(ws, {2}), b = Input(ws, {2});
    const Dense first(1, {.use_bias = false, .kernel_initializer = "zeros"});
    const Dense second(1, {.use_bias = false, .kernel_initializer = "zeros"});
    const Model net({a, b}, {first(a), second(b)});
    net.compile({.optimizer = SGD(options),
                 .loss = [](const Scope& s, Output, Output p) { return reduce_sum(s, p, {.axes = {1}}); }});
    const Tensor none = floats({1, 1}, {0});
    net.train_on_batch({floats({1, 2}, {-3, -4}), floats({1, 2}, {0, -12})}, {none, none});
    std::vector<float> all = elements(first.get_weights()[0]);
    for (const float w : elements(second.get_weights()[0])) all.push_back(w);
    return all;
  };
  EXPECT_THAT(moved({.lr = 1, .clipnorm = 2}), Pointwise(FloatNear(1e-5F), {1.2F, 1.6F, 0.F, 2.F}));
  EXPECT_THAT(moved({.lr = 1, .global_clipnorm = 6.5}), Pointwise(FloatNear(1e-5F), {1.5F, 2.F, 0.F, 6.F}));
  EXPECT_THAT(moved({.lr = 1, .clipvalue = 3.5}), Pointwise(FloatNear(1e-5F), {3.F, 3.5F, 0.F, 3.5F}));
}

TEST(Optimizer, HasNumbersThatCanBeSet) {
  Workspace ws;
  const Sequential net(ws,
                       {Dense(1, {.use_bias = false, .kernel_initializer = "zeros", .input_shape = {1}})});
  const SGD sgd({.lr = .5});
  EXPECT_THAT([&] { sgd.lr().get(); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("before a model is compiled")));
  net.compile({.optimizer = sgd,
               .loss = [](const Scope& s, Output, Output p) { return reduce_sum(s, p, {.axes = {1}}); }});
  net.train_on_batch(floats({1}, {1}), floats({1}, {0}));
  net.optimizer().lr().set(2);
  net.train_on_batch(floats({1}, {1}), floats({1}, {0}));
  EXPECT_FLOAT_EQ(net.get_weights()[0].value<float>(), -2.5F);
  EXPECT_EQ(sgd.iterations().get(), 2);
  EXPECT_EQ(sgd.lr().get(), 2);
  EXPECT_THAT([&] { sgd.momentum(); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("has none")));
}

TEST(Optimizer, CanBeAnyOfKolos) {
  Slope slope(std::make_shared<MomentumOptimizer>(0.1, 0.5), floats({1}, {1}));
  EXPECT_NEAR(slope.step(floats({1}, {1}))[0], .9F, 1e-6);
  EXPECT_NEAR(slope.step(floats({1}, {1}))[0], .75F, 1e-6);
}

TEST(Optimizer, NamesTheNearestOfUnknownNames) {
  EXPECT_THAT([] { Optimizer("adamm"); }, ThrowsMessage<InvalidArgumentError>(AllOf(
                                              HasSubstr("Unknown optimizer: adamm"), HasSubstr("\"adam"))));
  EXPECT_THAT([] { SGD({.clipnorm = 1, .global_clipnorm = 1}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("global_clipnorm goes with neither")));
}

}  // namespace
}  // namespace kolo::keras
