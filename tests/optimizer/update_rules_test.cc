// Expected values: rows 41 to 44 and 48 of the worked examples, which are TensorFlow 1's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/optimizer/adagrad.h>
#include <kolo/optimizer/adam.h>
#include <kolo/optimizer/gradient_descent.h>
#include <kolo/optimizer/momentum.h>

#include "tests/optimizer/small_training.h"

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr double kRelativeTolerance = 1e-5;

template <typename T>
void expect_near(const std::vector<T>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], kRelativeTolerance * std::abs(expected[i])) << "element " << i;
}

template <typename T>
class UpdateRules : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(UpdateRules, Types);

TYPED_TEST(UpdateRules, GradientDescentSubtractsRateTimesGradient) {
  GradientDescentOptimizer optimizer(3.0);
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.1)}, 1);
  expect_near(values[0], {0.7, 1.7});
}

TYPED_TEST(UpdateRules, MomentumAccumulatesGradients) {
  MomentumOptimizer optimizer(2.0, 0.9);
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.1)}, 2);
  expect_near(values[0], {0.8, 1.8});
  expect_near(values[1], {0.42, 1.42});
}

TYPED_TEST(UpdateRules, NesterovLooksAheadAlongTheNewAccumulator) {
  MomentumOptimizer optimizer(2.0, 0.9, /*use_nesterov=*/true);
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.1)}, 2);
  expect_near(values[0], {0.62, 1.62});
  expect_near(values[1], {0.078, 1.078});
}

TYPED_TEST(UpdateRules, AdagradDividesByTheRootOfAllSquares) {
  AdagradOptimizer optimizer(3.0);
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.1)}, 3);
  expect_near(values[0], {0.095465966, 1.095465966});
  expect_near(values[1], {-0.770559438, 1 - 0.770559438});
  expect_near(values[2], {-1.602609732, -0.602609732});
}

TYPED_TEST(UpdateRules, AdamMovesByItsRateUnderAConstantGradient) {
  AdamOptimizer optimizer;
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.1)}, 3);
  expect_near(values[0], {0.999000003, 1.999000003});
  expect_near(values[1], {0.998000005, 1.998000005});
  expect_near(values[2], {0.997000007, 1.997000007});
}

// One element more than whole vectors of any width, and enough that several threads share them.
TYPED_TEST(UpdateRules, TreatEveryElementOfALongVariableAlike) {
  const std::vector<TypeParam> start(100003, TypeParam(1)), gradient(100003, TypeParam(0.1));
  AdamOptimizer optimizer(0.5);
  const auto long_values = train<TypeParam>(optimizer, start, gradient, 2)[1];
  AdamOptimizer single(0.5);
  const TypeParam expected = train<TypeParam>(single, {1}, {TypeParam(0.1)}, 2)[1][0];
  for (std::size_t i = 0; i < long_values.size(); ++i) ASSERT_EQ(long_values[i], expected) << "element " << i;
}

TEST(Adam, FollowsThePapersFormulaForChangingSigns) {
  const double beta1 = 0.8, beta2 = 0.95, epsilon = 1e-3, rate = 0.1, gradient = -0.7;
  AdamOptimizer optimizer({.learning_rate = rate, .beta1 = beta1, .beta2 = beta2, .epsilon = epsilon});
  const auto values = train<double>(optimizer, {0.25}, {gradient}, 5);
  double v = 0.25, m = 0, w = 0;
  for (int t = 1; t <= 5; ++t) {
    m = beta1 * m + (1 - beta1) * gradient;
    w = beta2 * w + (1 - beta2) * gradient * gradient;
    v -= rate * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t)) * m / (std::sqrt(w) + epsilon);
    EXPECT_NEAR(values[t - 1][0], v, 1e-12) << "update " << t;
  }
}

TEST(Adam, RefusesBetasOutsideTheirRange) {
  EXPECT_THAT([] { AdamOptimizer({.beta1 = 1.0}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("beta1 is 1")));
  EXPECT_THAT([] { AdamOptimizer({.beta2 = -0.1}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("beta2 is -0.1")));
  EXPECT_THAT([] { AdamOptimizer({.epsilon = std::nan("")}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("epsilon is nan")));
}

TEST(Adagrad, RefusesAnAccumulatorThatStartsAtZero) {
  EXPECT_THAT(
      [] { AdagradOptimizer(0.01f, 0.0); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("initial_accumulator_value must be positive: 0")));
}

TEST(Hyperparameter, IsReadAnewInEachStepWhereItIsComputedInTheGraph) {
  Graph graph;
  Scope s(graph);
  const Output rate = placeholder(s, DType::f32, {});
  const Variable v(s.named("v"), constant(s, Tensor::of<double>({1}, {1.0})));
  const GradientPair pair = {constant(s, Tensor::of<double>({1}, {1.0})), v};
  GradientDescentOptimizer optimizer(rate);
  const Operation step = optimizer.apply_gradients(s, {&pair, 1});
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step, {{rate, Tensor::scalar(0.5f)}});
  EXPECT_EQ(session.run(v.read()).value<double>(), 0.5);
  session.run(step, {{rate, Tensor::scalar(0.25f)}});
  EXPECT_EQ(session.run(v.read()).value<double>(), 0.25);
}

TEST(Hyperparameter, RefusesWhatIsNoFloatingPointScalar) {
  Graph graph;
  Scope s(graph);
  const Output vector = placeholder(s, DType::f32, {2});
  EXPECT_THAT([&] { Hyperparameter{vector}; }, ThrowsMessage<InvalidArgumentError>(HasSubstr("f32 [2]")));
  const Output whole = placeholder(s, DType::i32, {});
  EXPECT_THAT([&] { Hyperparameter{whole}; }, ThrowsMessage<InvalidArgumentError>(HasSubstr("i32 []")));
}

}  // namespace
}  // namespace kolo
