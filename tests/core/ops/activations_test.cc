#include <kolo/core/ops/activations.h>

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/graph/inference_form.h>
#include <kolo/core/ops/basic.h>

#include "tests/core/ops/compare_tensors.h"

namespace kolo {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct Case {
  std::string name;
  Output (*build)(const Scope& s, Output x);
  double (*expected)(double x);
  double at_minus_infinity;  // the limit; NaN: not asked for
};

const double kUnasked = std::numeric_limits<double>::quiet_NaN();
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

const Case kCases[] = {
    {"gelu", [](const Scope& s, Output x) { return gelu(s, x); },
     [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2)); }, kUnasked},
    {"gelu_tanh", [](const Scope& s, Output x) { return gelu(s, x, true); },
     [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); },
     kUnasked},
    {"swish", swish, [](double x) { return x * sigmoid_of(x); }, kUnasked},
    {"elu", [](const Scope& s, Output x) { return elu(s, x); },
     [](double x) { return x > 0 ? x : std::expm1(x); }, -1},
    {"elu_of_other_alpha", [](const Scope& s, Output x) { return elu(s, x, 0.5); },
     [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); }, -0.5},
    {"selu", selu,
     [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); },
     -1.0507009873554805 * 1.6732632423543772},
    {"leaky_relu", [](const Scope& s, Output x) { return leaky_relu(s, x); },
     [](double x) { return x > 0 ? x : 0.2 * x; }, -std::numeric_limits<double>::infinity()},
    {"softplus", softplus, [](double x) { return std::log1p(std::exp(x)); }, 0},
    {"relu6", relu6, [](double x) { return std::fmin(std::fmax(x, 0), 6); }, 0},
};

class Activations : public testing::TestWithParam<Case> {
 protected:
  static Output build(Scope& s, const Outputs& in) { return GetParam().build(s, in[0]); }
};

// Where the functions bend; an odd number, so that vectors have a rest.
Tensor range() {
  Tensor x(DType::f64, {16 * 24 + 7});
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x.data<double>()[i] = (static_cast<double>(i) + 0.5) / 16 - 12;
  return x;
}

TEST_P(Activations, HaveTheValuesOfTheirFormula) {
  const Tensor x = range();
  Tensor y(DType::f64, x.shape());
  for (std::int64_t i = 0; i < x.elements(); ++i)
    y.data<double>()[i] = GetParam().expected(x.data<double>()[i]);
  expect_both_types({x}, y, 2e-6, build);
}

TEST_P(Activations, HaveTheGradientOfTheirValues) {
  expect_gradients({range()}, build);
  expect_same_gradients({range()}, 3e-6, build);
}

TEST_P(Activations, TakeLargeAndNonFiniteNumbers) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = Tensor::of<double>({5}, {-infinity, -1e4, 1e4, infinity, std::nan("")});
    const Tensor y = detail::as_double(run_op({dtype == DType::f32 ? to_f32(x) : x}, build));
    const double* values = y.data<double>();
    if (!std::isnan(GetParam().at_minus_infinity)) {
      EXPECT_FLOAT_EQ(values[0], GetParam().at_minus_infinity);
    }
    EXPECT_NEAR(values[1], GetParam().expected(-1e4), 1e-3) << name(dtype);
    EXPECT_FLOAT_EQ(values[2], GetParam().name == "relu6"  ? 6
                               : GetParam().name == "selu" ? 10507.009873554805
                                                           : 1e4);
    EXPECT_EQ(values[3], GetParam().name == "relu6" ? 6 : infinity);
    EXPECT_TRUE(std::isnan(values[4]));
  }
}

TEST_P(Activations, HaveFiniteGradientsAtLargeNumbers) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = Tensor::of<double>({4}, {-1e15, -200, 200, 1e15});
    const Tensor dx = run_op({dtype == DType::f32 ? to_f32(x) : x},
                             [](Scope& s, const Outputs& in) { return gradients(s, {build(s, in)}, in)[0]; });
    const Tensor values = detail::as_double(dx);
    const double slope = GetParam().name == "relu6" ? 0 : GetParam().name == "selu" ? 1.0507009873554805 : 1;
    const double left = GetParam().name == "leaky_relu" ? 0.2 : 0;
    for (int i = 0; i < 4; ++i)
      EXPECT_NEAR(values.data<double>()[i], i < 2 ? left : slope, 1e-6) << name(dtype) << " element " << i;
  }
}

TEST_P(Activations, KeepTheShape) {
  expect_shape({{-1, 3}}, build, {-1, 3});
  EXPECT_EQ(run_op({Tensor::zeros(DType::f32, {0, 3})}, build).shape(), (Shape{0, 3}));
}

INSTANTIATE_TEST_SUITE_P(Functions, Activations, testing::ValuesIn(kCases),
                         [](const auto& instance) { return instance.param.name; });

struct SoftmaxCase {
  Shape shape;
  int axis;
};

class Softmax : public testing::TestWithParam<SoftmaxCase> {
 protected:
  static Output build(Scope& s, const Outputs& in) { return softmax(s, in[0], GetParam().axis); }
  static Output build_log(Scope& s, const Outputs& in) { return log_softmax(s, in[0], GetParam().axis); }

  // The softmax by its definition: elements that differ in the axis alone are `inner` apart.
  Tensor expected(bool logarithm) const {
    const auto [shape, axis] = GetParam();
    Tensor y(DType::f64, shape);
    const int at = axis < 0 ? axis + shape.rank() : axis;
    std::int64_t inner = 1;
    for (int i = at + 1; i < shape.rank(); ++i) inner *= shape.dim(i);
    const std::int64_t count = shape.dim(at);
    const double* x = x_.data<double>();
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      const std::int64_t first = i - i / inner % count * inner;
      double sum = 0;
      for (std::int64_t k = 0; k < count; ++k) sum += std::exp(x[first + k * inner]);
      y.data<double>()[i] = logarithm ? x[i] - std::log(sum) : std::exp(x[i]) / sum;
    }
    return y;
  }
  const Tensor x_ = test_numbers(GetParam().shape);
};

TEST_P(Softmax, IsTheShareOfEachExponential) { expect_both_types({x_}, expected(false), 1e-6, build); }
TEST_P(Softmax, HasTheGradientOfItsValues) { expect_gradients({x_}, build); }
TEST_P(Softmax, HasTheSameGradientInBothTypes) { expect_same_gradients({x_}, 1e-6, build); }

TEST_P(Softmax, HasItsLogarithm) { expect_both_types({x_}, expected(true), 2e-6, build_log); }
TEST_P(Softmax, HasTheGradientOfItsLogarithm) { expect_gradients({x_}, build_log); }
TEST_P(Softmax, HasTheSameGradientOfItsLogarithmInBothTypes) { expect_same_gradients({x_}, 2e-6, build_log); }

INSTANTIATE_TEST_SUITE_P(Shapes, Softmax,
                         testing::Values(SoftmaxCase{{7}, -1}, SoftmaxCase{{3, 10}, -1},
                                         SoftmaxCase{{2, 3, 5}, -1}, SoftmaxCase{{4, 1}, 1},
                                         SoftmaxCase{{1, 65}, -1}, SoftmaxCase{{0, 3}, -1},
                                         SoftmaxCase{{3, 10}, 0}, SoftmaxCase{{2, 3, 5}, 1},
                                         SoftmaxCase{{2, 3, 4, 5}, -3}, SoftmaxCase{{0, 3}, 0}));

TEST(SoftmaxOfLargeNumbers, DoesNotOverflow) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = Tensor::of<double>({1, 3}, {1000, 1000, -1000});
    const Tensor y = run_op({dtype == DType::f32 ? to_f32(x) : x},
                            [](Scope& s, const Outputs& in) { return softmax(s, in[0]); });
    expect_near(y, Tensor::of<double>({1, 3}, {0.5, 0.5, 0}), 1e-6);
  }
}

TEST(LogSoftmaxOfLargeNumbers, KeepsWhatTheSoftmaxLoses) {
  const Tensor x = Tensor::of<double>({1, 2}, {1000, 0});
  expect_both_types({x}, Tensor::of<double>({1, 2}, {0, -1000}), 1e-6,
                    [](Scope& s, const Outputs& in) { return log_softmax(s, in[0]); });
}

TEST(SoftmaxErrors, RefusesAnAxisThatIsNotThere) {
  Graph graph;
  Scope s(graph);
  EXPECT_THAT(
      [&] {
        softmax(s, zeros(s, DType::f32, {2, 3}), 2);
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("axis is 2; it must be in [-2, 2)")));
}

TEST(SoftmaxErrors, RefusesAScalar) {
  Graph graph;
  Scope s(graph);
  EXPECT_THAT([&] { softmax(s, zeros(s, DType::f32, {})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("scalar")));
}

constexpr std::int64_t kMany = 100'001;

// Dropout of ones, in a graph with a seed: its results in the first runs of a session.
std::vector<Tensor> draws(DType dtype, double rate, int runs = 1, int seed = 7, int threads = 1) {
  Graph graph;
  graph.set_seed(seed);
  Scope s(graph);
  const Output y = dropout(s, ones(s, dtype, {kMany}), rate);
  SessionConfig config;
  config.intra_op_parallelism_threads = threads;
  Session session(graph, config);
  std::vector<Tensor> results;
  for (int run = 0; run < runs; ++run) results.push_back(detail::as_double(session.run(y)));
  return results;
}

bool same(const Tensor& a, const Tensor& b) { return std::equal(a.raw(), a.raw() + a.bytes(), b.raw()); }

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const double rate : {0.1, 0.5, 0.9}) {
      const Tensor y = draws(dtype, rate)[0];
      std::int64_t dropped = 0;
      for (const double value : y.span<double>()) {
        if (value == 0) ++dropped;
        else ASSERT_NEAR(value, 1 / (1 - rate), 1e-6);
      }
      // Five standard errors; the seed is fixed.
      const auto count = static_cast<double>(kMany);
      EXPECT_NEAR(static_cast<double>(dropped) / count, rate, 5 * std::sqrt(rate * (1 - rate) / count));
    }
}

TEST(Dropout, DrawsAnewInEachRunAndAlikeInEachSession) {
  const auto first = draws(DType::f32, 0.5, 2), second = draws(DType::f32, 0.5, 2);
  EXPECT_FALSE(same(first[0], first[1]));
  EXPECT_TRUE(same(first[0], second[0]));
  EXPECT_TRUE(same(first[1], second[1]));
  EXPECT_FALSE(same(first[0], draws(DType::f32, 0.5, 1, 8)[0]));
}

TEST(Dropout, DoesNotDependOnTheNumberOfThreads) {
  EXPECT_TRUE(same(draws(DType::f32, 0.5)[0], draws(DType::f32, 0.5, 1, 7, 3)[0]));
}

// What a rank of a job draws.
class OfRank {
 public:
  explicit OfRank(int rank) {
    ProcessInfo found = process();
    found.rank = rank;
    found.size = 4;
    set_process(found);
  }
  ~OfRank() { set_process({}); }
  OfRank(const OfRank&) = delete;
  OfRank& operator=(const OfRank&) = delete;
};

TEST(Dropout, DropsOtherElementsOnEachRank) {
  const Tensor alone = draws(DType::f32, 0.5)[0];
  std::vector<Tensor> all;
  for (int rank = 0; rank < 4; ++rank) {
    const OfRank process(rank);
    all.push_back(draws(DType::f32, 0.5)[0]);
  }
  EXPECT_TRUE(same(all[0], alone));
  for (int rank = 1; rank < 4; ++rank)
    for (int other = 0; other < rank; ++other) {
      std::int64_t equal = 0;
      for (std::int64_t i = 0; i < kMany; ++i)
        equal += all[rank].data<double>()[i] == all[other].data<double>()[i];
      const auto count = static_cast<double>(kMany);
      EXPECT_NEAR(static_cast<double>(equal) / count, 0.5, 5 * std::sqrt(0.25 / count)) << rank << other;
    }
}

TEST(Dropout, GoesOnOnEachRankFromThePositionThatRankZeroHasSaved) {
  Graph graph;
  graph.set_seed(7);
  const Scope s(graph);
  const Output y = dropout(s, ones(s, DType::f32, {100}), 0.5);
  Session chief(graph);
  chief.run(y);
  const OfRank process(2);
  Session undisturbed(graph), restored(graph);
  undisturbed.run(y);
  restored.set_random_positions(chief.random_positions());
  EXPECT_TRUE(same(restored.run(y), undisturbed.run(y)));
}

TEST(Dropout, LetsGradientsPassWhereItLetXPass) {
  Graph graph;
  Scope s(graph);
  const Output x = ones(s, DType::f64, {1000}), y = dropout(s, x, 0.25);
  const Tensor dy = test_numbers({1000});
  const auto results = Session(graph).run({y, gradients(s, {y}, {x}, {constant(s, dy)})[0]});
  for (int i = 0; i < 1000; ++i)
    ASSERT_DOUBLE_EQ(results[1].data<double>()[i], results[0].data<double>()[i] * dy.data<double>()[i]) << i;
  record_op_check("Dropout", OpCheck::value);
  record_op_check("Dropout", OpCheck::gradient);
  record_op_check("DropoutGrad", OpCheck::value);
}

TEST(Dropout, KeepsTheShape) {
  const auto build = [](Scope& s, const Outputs& in) { return dropout(s, in[0], 0.5); };
  const auto build_gradient = [&](Scope& s, const Outputs& in) {
    return gradients(s, {build(s, in)}, in)[0];
  };
  expect_shape({{-1, 3}}, build, {-1, 3});
  expect_shape({{-1, 3}}, build_gradient, {-1, 3});
  EXPECT_EQ(run_op({Tensor::zeros(DType::f32, {0, 3})}, build).shape(), (Shape{0, 3}));
}

TEST(Dropout, IsNothingInInferenceOrAtRateZero) {
  Graph graph;
  Scope s(graph);
  const Output x = ones(s, DType::f32, {3});
  EXPECT_EQ(inference_form(s, dropout(s, x, 0.5)), x);
  EXPECT_EQ(dropout(s, x, 0), x);
}

TEST(DropoutErrors, RefusesRatesThatLeaveNothing) {
  Graph graph;
  Scope s(graph);
  const Output x = ones(s, DType::f32, {3});
  for (const double rate : {1.0, -0.5, std::nan("")})
    EXPECT_THAT([&] { dropout(s, x, rate); },
                ThrowsMessage<InvalidArgumentError>(
                    HasSubstr("rate must be a scalar tensor or a float in the range [0, 1), got")));
}

}  // namespace
}  // namespace kolo
