// Expected values: rows 41 to 52 of the worked examples, which are TensorFlow 1's; for the rules that it has
// not, plain loops over the papers' formulas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/optimizer/rules.h>

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

// Row 41 of the worked examples.
TYPED_TEST(UpdateRules, GradientDescentSubtractsRateTimesGradient) {
  GradientDescentOptimizer optimizer(3.0);
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.1)}, 1);
  expect_near(values[0], {0.7, 1.7});
}

// Row 42 of the worked examples.
TYPED_TEST(UpdateRules, MomentumAccumulatesGradients) {
  MomentumOptimizer optimizer(2.0, 0.9);
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.1)}, 2);
  expect_near(values[0], {0.8, 1.8});
  expect_near(values[1], {0.42, 1.42});
}

// Row 43 of the worked examples.
TYPED_TEST(UpdateRules, NesterovLooksAheadAlongTheNewAccumulator) {
  MomentumOptimizer optimizer(2.0, 0.9, /*use_nesterov=*/true);
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.1)}, 2);
  expect_near(values[0], {0.62, 1.62});
  expect_near(values[1], {0.078, 1.078});
}

// Row 44 of the worked examples.
TYPED_TEST(UpdateRules, AdagradDividesByTheRootOfAllSquares) {
  AdagradOptimizer optimizer(3.0);
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.1)}, 3);
  expect_near(values[0], {0.095465966, 1.095465966});
  expect_near(values[1], {-0.770559438, 1 - 0.770559438});
  expect_near(values[2], {-1.602609732, -0.602609732});
}

// Row 48 of the worked examples.
TYPED_TEST(UpdateRules, AdamMovesByItsRateUnderAConstantGradient) {
  AdamOptimizer optimizer;
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.1)}, 3);
  expect_near(values[0], {0.999000003, 1.999000003});
  expect_near(values[1], {0.998000005, 1.998000005});
  expect_near(values[2], {0.997000007, 1.997000007});
}

// Row 45 of the worked examples.
TYPED_TEST(UpdateRules, RmsPropDividesByTheRootOfTheMeanSquare) {
  RMSPropOptimizer optimizer(2.0);
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.2)}, 2);
  expect_near(values[0], {0.789298513, 1.579296838});
  expect_near(values[1], {0.567336464, 1.136922883});
}

// Row 46 of the worked examples.
TYPED_TEST(UpdateRules, RmsPropKeepsMomentum) {
  RMSPropOptimizer optimizer({.learning_rate = 2.0, .momentum = 0.5, .epsilon = 1e-3});
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.2)}, 2);
  expect_near(values[0], {0.789415342, 1.579529335});
  expect_near(values[1], {0.462297532, 0.927190331});
}

// Row 47 of the worked examples.
TYPED_TEST(UpdateRules, CenteredRmsPropDividesByTheDeviation) {
  RMSPropOptimizer optimizer({.learning_rate = 2.0, .epsilon = 1e-3, .centered = true});
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.2)}, 2);
  expect_near(values[0], {0.789403668, 1.579436383});
  expect_near(values[1], {0.567528915, 1.136942262});
}

// Row 49 of the worked examples.
TYPED_TEST(UpdateRules, AdadeltaMovesByTheRatioOfRoots) {
  AdadeltaOptimizer optimizer(1.0);
  const auto values = train<TypeParam>(optimizer, {1}, {TypeParam(0.1)}, 2);
  expect_near(values[0], {0.999552791});
  expect_near(values[1], {0.999099885});
}

// Row 50 of the worked examples.
TYPED_TEST(UpdateRules, FtrlFollowsTheRegularizedLeader) {
  FtrlOptimizer optimizer(3.0);
  const auto values = train<TypeParam>(optimizer, {0, 0}, {TypeParam(0.1), TypeParam(0.2)}, 3);
  expect_near(values[2], {-2.602609732, -4.296985312});
}

// Row 51 of the worked examples.
TYPED_TEST(UpdateRules, FtrlRegularizesByL1AndL2) {
  FtrlOptimizer optimizer({.learning_rate = 3.0, .l1 = 0.001, .l2 = 2.0});
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.2)}, 10);
  expect_near(values[9], {-0.240599348, -0.468293501});
}

// Row 52 of the worked examples.
TYPED_TEST(UpdateRules, FtrlShrinksTheLossAlone) {
  FtrlOptimizer optimizer({.learning_rate = 3.0, .l1 = 0.001, .l2 = 2.0, .l2_shrinkage = 0.1});
  const auto values = train<TypeParam>(optimizer, {1, 2}, {TypeParam(0.1), TypeParam(0.2)}, 10);
  expect_near(values[9], {-0.225789958, -0.443457955});
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

TEST(AdamW, DecaysTheVariableBesideAdamsStep) {
  const double rate = 0.1, decay = 0.3, gradient = 0.5;
  AdamWOptimizer optimizer({.learning_rate = rate, .weight_decay = decay});
  const auto values = train<double>(optimizer, {2}, {gradient}, 3);
  double v = 2, m = 0, w = 0;
  for (int t = 1; t <= 3; ++t) {
    m += (gradient - m) * (1 - 0.9);
    w += (gradient * gradient - w) * (1 - 0.999);
    v -= rate * decay * v;
    v -= rate * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)) * m / (std::sqrt(w) + 1e-8);
    EXPECT_NEAR(values[t - 1][0], v, 1e-12) << "update " << t;
  }
}

TEST(Lion, MovesByTheSignOfItsDirection) {
  LionOptimizer optimizer({.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.9, .weight_decay = 0.2});
  const std::vector<double> gradient = {0.3, -4, 0};
  const auto values = train<double>(optimizer, {1, 1, 1}, gradient, 3);
  std::vector<double> v = {1, 1, 1}, m = {0, 0, 0};
  for (int t = 0; t < 3; ++t)
    for (std::size_t i = 0; i < 3; ++i) {
      const double c = 0.5 * m[i] + 0.5 * gradient[i];
      v[i] -= 0.1 * ((c > 0 ? 1 : c < 0 ? -1 : 0) + 0.2 * v[i]);
      m[i] = 0.9 * m[i] + 0.1 * gradient[i];
      EXPECT_NEAR(values[t][i], v[i], 1e-12) << "update " << t << ", element " << i;
    }
}

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double element : x) sum += element * element;
  return std::sqrt(sum);
}

// The values of a variable of `shape` after each of `steps` updates with the same gradient.
std::vector<std::vector<double>> train_matrix(Optimizer& optimizer, const Shape& shape,
                                              const std::vector<double>& start,
                                              const std::vector<double>& gradient, int steps) {
  Graph graph;
  Scope s(graph);
  const auto tensor = [&](const std::vector<double>& x) {
    return constant(s, Tensor::of(shape, std::span<const double>(x)));
  };
  const Variable v(s.named("v"), tensor(start));
  const GradientPair pair = {tensor(gradient), v};
  const Operation step = optimizer.apply_gradients(s, {&pair, 1});
  Session session(graph);
  session.run(global_variables_initializer(s));
  std::vector<std::vector<double>> values;
  for (int i = 0; i < steps; ++i) {
    session.run(step);
    values.push_back(elements<double>(session.run(v.read())));
  }
  return values;
}

const std::vector<double> kStart = {1, -2, 0.5, 3}, kGradient = {0.1, 0.2, -0.3, 0.4};

TEST(Lars, MeasuresTheStepByTheLengthOfTheWeights) {
  const double rate = 2, momentum = 0.9, decay = 0.1, trust = 0.01;
  LARSOptimizer optimizer(
      {.learning_rate = rate, .momentum = momentum, .weight_decay = decay, .trust_coefficient = trust});
  const auto values = train_matrix(optimizer, {2, 2}, kStart, kGradient, 3);
  std::vector<double> v = kStart, a(4, 0);
  for (int t = 0; t < 3; ++t) {
    const double ratio = trust * norm(v) / (norm(kGradient) + decay * norm(v));
    for (std::size_t i = 0; i < 4; ++i) {
      a[i] = momentum * a[i] + rate * ratio * (kGradient[i] + decay * v[i]);
      v[i] -= a[i];
      EXPECT_NEAR(values[t][i], v[i], 1e-12) << "update " << t << ", element " << i;
    }
  }
}

TEST(Lars, MovesVectorsByPlainMomentumAndZeroWeightsByTheirGradient) {
  LARSOptimizer optimizer({.learning_rate = 2.0, .momentum = 0.0, .weight_decay = 0.1});
  EXPECT_NEAR(train_matrix(optimizer, {4}, kStart, kGradient, 1)[0][1], -2 - 2 * 0.2, 1e-12);
  LARSOptimizer other({.learning_rate = 2.0, .momentum = 0.0, .weight_decay = 0.1});
  EXPECT_NEAR(train_matrix(other, {2, 2}, {0, 0, 0, 0}, kGradient, 1)[0][1], -2 * 0.2, 1e-12);
}

TEST(Lamb, MeasuresAdamsStepByTheLengthOfTheWeights) {
  const double rate = 0.1, decay = 0.2, epsilon = 1e-6;
  LAMBOptimizer optimizer({.learning_rate = rate, .weight_decay = decay});
  const auto values = train_matrix(optimizer, {2, 2}, kStart, kGradient, 3);
  std::vector<double> v = kStart, m(4, 0), w(4, 0), d(4);
  for (int t = 1; t <= 3; ++t) {
    for (std::size_t i = 0; i < 4; ++i) {
      m[i] = 0.9 * m[i] + 0.1 * kGradient[i];
      w[i] = 0.999 * w[i] + 0.001 * kGradient[i] * kGradient[i];
      d[i] = m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(w[i] / (1 - std::pow(0.999, t))) + epsilon) +
             decay * v[i];
    }
    const double ratio = norm(v) / norm(d);
    for (std::size_t i = 0; i < 4; ++i) {
      v[i] -= rate * ratio * d[i];
      EXPECT_NEAR(values[t - 1][i], v[i], 1e-12) << "update " << t << ", element " << i;
    }
  }
}

TEST(Ftrl, TakesOtherPowersThanTheRoot) {
  FtrlOptimizer optimizer({.learning_rate = 3.0, .learning_rate_power = -0.3});
  const auto values = train<double>(optimizer, {1}, {0.4}, 2);
  double v = 1, a = 0.1, z = 0;
  for (int t = 0; t < 2; ++t) {
    const double n = a + 0.4 * 0.4;
    z += 0.4 - (std::pow(n, 0.3) - std::pow(a, 0.3)) / 3 * v;
    v = -z / (std::pow(n, 0.3) / 3);
    a = n;
    EXPECT_NEAR(values[t][0], v, 1e-12) << "update " << t;
  }
}

TEST(Ftrl, RefusesNumbersOutOfTheirRange) {
  EXPECT_THAT(
      [] { FtrlOptimizer({.initial_accumulator_value = -1}); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("initial_accumulator_value must be positive: -1")));
  EXPECT_THAT([] { FtrlOptimizer({.l1 = -1}); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("l1 is -1")));
  EXPECT_THAT([] { FtrlOptimizer({.learning_rate_power = 1}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("learning_rate_power is 1")));
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

TEST(Hyperparameter, CanBeATensorInAllOfAdamsNumbers) {
  Graph graph;
  Scope s(graph);
  const auto number = [&](float value) { return constant(s, value); };
  const Variable v(s.named("v"), constant(s, Tensor::of<float>({1}, {1})));
  const GradientPair pair = {constant(s, Tensor::of<float>({1}, {0.1f})), v};
  AdamOptimizer optimizer({.learning_rate = number(0.001f),
                           .beta1 = number(0.9f),
                           .beta2 = number(0.999f),
                           .epsilon = number(1e-8f)});
  const Operation step = optimizer.apply_gradients(s, {&pair, 1});
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  EXPECT_NEAR(session.run(v.read()).value<float>(), 0.999, 1e-6);
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
