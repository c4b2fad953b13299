#include <kolo/core/ops/random.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/graph/inference_form.h>
#include <kolo/core/ops/basic.h>

#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::Lt;
using testing::ThrowsMessage;

constexpr int kSeed = 1234;

using Builder = std::function<Output(Scope&)>;

// The results of the first `runs` runs in a new session.
std::vector<Tensor> draw(const Builder& build, int runs = 1, int graph_seed = kSeed) {
  Graph graph;
  graph.set_seed(graph_seed);
  Scope s(graph);
  const Output numbers = build(s);
  Session session(graph);
  std::vector<Tensor> results;
  for (int run = 0; run < runs; ++run) results.push_back(session.run(numbers));
  record_op_check(numbers.node->op(), OpCheck::value);
  return results;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::equal(a.raw(), a.raw() + a.bytes(), b.raw());
}

// Mean, and the second to fourth moments about it.
struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};
template <typename T>
Moments moments(const Tensor& tensor) {
  Moments m;
  const auto count = static_cast<double>(tensor.elements());
  for (const T x : tensor.span<T>()) m.mean += x / count;
  for (const T x : tensor.span<T>()) m.variance += std::pow(x - m.mean, 2) / count;
  for (const T x : tensor.span<T>()) {
    m.skewness += std::pow((x - m.mean) / std::sqrt(m.variance), 3) / count;
    m.kurtosis += std::pow((x - m.mean) / std::sqrt(m.variance), 4) / count;
  }
  return m;
}

const Builder kBuilders[] = {
    [](Scope& s) {
      return random_uniform(s, DType::f32, {301, 101});
    },
    [](Scope& s) {
      return random_normal(s, DType::f32, {301, 101});
    },
    [](Scope& s) {
      return truncated_normal(s, DType::f32, {301, 101});
    },
    [](Scope& s) {
      return random_uniform(s, DType::f64, {301, 101});
    },
    [](Scope& s) {
      return random_normal(s, DType::f64, {301, 101});
    },
    [](Scope& s) {
      return truncated_normal(s, DType::f64, {301, 101});
    },
};

TEST(Random, HasTheShapeThatWasAskedFor) {
  for (const Builder& build : kBuilders)
    expect_shape({}, [&](Scope& s, const Outputs&) { return build(s); }, {301, 101});
}

TEST(Random, GivesTheSameNumbersOnAnyNumberOfThreads) {
  for (const Builder& build : kBuilders) {
    const auto on = [&](int count) {
      const IntraOpThreads threads(count);
      return draw(build, 2);
    };
    const auto one = on(1), three = on(3);
    for (int run = 0; run < 2; ++run) EXPECT_TRUE(same(one[run], three[run]));
  }
}

TEST(Random, StartsAnewInEachSessionAndGoesOnWithinOne) {
  for (const Builder& build : kBuilders) {
    const auto first = draw(build, 2), again = draw(build, 2);
    EXPECT_TRUE(same(first[0], again[0]));
    EXPECT_TRUE(same(first[1], again[1]));
    EXPECT_FALSE(same(first[0], first[1]));
  }
}

TEST(Random, FollowsFromGraphSeedAndOpSeed) {
  const auto with_op_seed = [](int seed) {
    return [seed](Scope& s) { return random_uniform(s, DType::f32, {100}, 0, 1, seed); };
  };
  EXPECT_TRUE(same(draw(with_op_seed(1))[0], draw(with_op_seed(1))[0]));
  EXPECT_FALSE(same(draw(with_op_seed(1))[0], draw(with_op_seed(2))[0]));
  EXPECT_FALSE(same(draw(with_op_seed(1), 1, 5)[0], draw(with_op_seed(1), 1, 6)[0]));
}

TEST(Random, TwoOpsOfOneGraphDiffer) {
  Graph graph;
  graph.set_seed(kSeed);
  Scope s(graph);
  const Output a = random_uniform(s, DType::f32, {100}), b = random_uniform(s, DType::f32, {100});
  const auto results = Session(graph).run({a, b});
  EXPECT_FALSE(same(results[0], results[1]));
}

// A longer tensor begins with the numbers of a shorter one: element i depends on its position alone.
TEST(Random, ElementDependsOnItsPositionAlone) {
  const auto of = [](std::int64_t count) {
    return draw([=](Scope& s) { return random_normal(s, DType::f32, {count}); })[0];
  };
  const Tensor longer = of(1001), shorter = of(7);
  EXPECT_TRUE(
      std::equal(shorter.span<float>().begin(), shorter.span<float>().end(), longer.span<float>().begin()));
}

TEST(Random, RunsDoNotOverlap) {
  const auto runs = draw([](Scope& s) { return random_uniform(s, DType::f64, {4}); }, 3);
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < a; ++b)
      for (const double x : runs[a].span<double>())
        for (const double y : runs[b].span<double>()) EXPECT_NE(x, y);
}

// The bounds are five standard errors of the moments of a million numbers; the seed is fixed.
constexpr std::int64_t kMany = 1'000'000;

TEST(Random, UniformFillsItsRange) {
  const Tensor x = draw([](Scope& s) { return random_uniform(s, DType::f32, {kMany}, -1, 3); })[0];
  EXPECT_THAT(x.span<float>(), Each(AllOf(Ge(-1), Lt(3))));
  const Moments m = moments<float>(x);
  EXPECT_NEAR(m.mean, 1, 5 * std::sqrt(16.0 / 12 / kMany));
  EXPECT_NEAR(m.variance, 16.0 / 12, 5 * 16.0 / std::sqrt(180.0 * kMany));
  EXPECT_NEAR(m.kurtosis, 1.8, 0.01);
}

TEST(Random, UniformNeverReachesItsUpperEnd) {
  // Between 1 and the next float but one there are two numbers: rounding would give the end half of the time.
  const float high = std::nextafter(std::nextafter(1.0f, 2.0f), 2.0f);
  const Tensor x = draw([=](Scope& s) { return random_uniform(s, DType::f32, {1000}, 1, high); })[0];
  EXPECT_THAT(x.span<float>(), Each(AllOf(Ge(1), Lt(high))));
}

template <typename T>
void expect_normal(const Tensor& x, double mean, double stddev) {
  const Moments m = moments<T>(x);
  EXPECT_NEAR(m.mean, mean, 5 * stddev / std::sqrt(kMany));
  EXPECT_NEAR(m.variance, stddev * stddev, 5 * stddev * stddev * std::sqrt(2.0 / kMany));
  EXPECT_NEAR(m.skewness, 0, 5 * std::sqrt(6.0 / kMany));
  EXPECT_NEAR(m.kurtosis, 3, 5 * std::sqrt(24.0 / kMany));
}

TEST(Random, NormalHasTheMomentsOfOne) {
  expect_normal<float>(draw([](Scope& s) { return random_normal(s, DType::f32, {kMany}, 2, 0.5); })[0], 2,
                       0.5);
  expect_normal<double>(draw([](Scope& s) { return random_normal(s, DType::f64, {kMany}); })[0], 0, 1);
}

TEST(Random, TruncatedNormalStaysWithinTwoDeviations) {
  const Tensor x = draw([](Scope& s) { return truncated_normal(s, DType::f32, {kMany}, 1, 3); })[0];
  EXPECT_THAT(x.span<float>(), Each(AllOf(Ge(-5), Le(7))));
  const Moments m = moments<float>(x);
  // Of the standard normal cut off at ±2: variance 1 − 4·φ(2)/(Φ(2) − Φ(−2)) = 0.773741.
  EXPECT_NEAR(m.mean, 1, 5 * 3 * 0.88 / std::sqrt(kMany));
  EXPECT_NEAR(m.variance, 9 * 0.773741, 5 * 9 * 0.9 / std::sqrt(kMany));
  EXPECT_NEAR(m.skewness, 0, 0.01);
}

TEST(Random, TakesEmptyShapesAndScalars) {
  EXPECT_EQ(draw([](Scope& s) { return random_normal(s, DType::f32, {0, 3}); })[0].shape(), (Shape{0, 3}));
  EXPECT_EQ(draw([](Scope& s) { return random_normal(s, DType::f64, {}); })[0].elements(), 1);
}

TEST(Random, RefusesWhatItCannotDraw) {
  EXPECT_THAT([] { draw([](Scope& s) { return random_normal(s, DType::i32, {2}); }); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("i32")));
  EXPECT_THAT([] { draw([](Scope& s) { return random_normal(s, DType::f32, {-1}); }); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("[?]")));
  EXPECT_THAT([] { draw([](Scope& s) { return random_uniform(s, DType::f32, {2}, 1, 1); }); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("[1, 1)")));
  EXPECT_THAT([] { draw([](Scope& s) { return random_normal(s, DType::f32, {2}, 0, -1); }); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("-1")));
}

Output noise_of(Scope& s, const Output& x) { return gaussian_noise(s, x, 0.5); }

TEST(GaussianNoise, HasTheMomentsOfItsDistribution) {
  const Tensor y = draw([](Scope& s) { return noise_of(s, fill(s, DType::f32, {300, 1000}, 2)); })[0];
  const Moments m = moments<float>(y);
  const auto count = static_cast<double>(y.elements());
  EXPECT_NEAR(m.mean, 2, 5 * 0.5 / std::sqrt(count));
  EXPECT_NEAR(m.variance, 0.25, 5 * 0.25 * std::sqrt(2 / count));
  EXPECT_NEAR(m.kurtosis, 3, 5 * std::sqrt(24 / count));
}

TEST(GaussianNoise, IsDrawnAnewInEachRun) {
  const auto runs = draw([](Scope& s) { return noise_of(s, zeros(s, DType::f64, {5})); }, 2);
  EXPECT_FALSE(same(runs[0], runs[1]));
}

TEST(GaussianNoise, LeavesInferenceAloneAndLetsGradientsPass) {
  Graph graph;
  Scope s(graph);
  const Output x = constant(s, Tensor::of<double>({3}, {1, -2, 3}));
  const Output y = noise_of(s, x);
  const auto results = Session(graph).run({inference_form(s, y), gradients(s, {y}, {x})[0]});
  EXPECT_THAT(results[0].span<double>(), testing::ElementsAre(1, -2, 3));
  EXPECT_THAT(results[1].span<double>(), Each(1));
  record_op_check("GaussianNoise", OpCheck::gradient);
}

TEST(GaussianNoise, KeepsTheShape) {
  expect_shape({{-1, 3}}, [](Scope& s, const Outputs& x) { return noise_of(s, x[0]); }, {-1, 3});
}

TEST(GaussianNoise, RefusesADeviationThatIsNone) {
  EXPECT_THAT([] { draw([](Scope& s) { return gaussian_noise(s, zeros(s, DType::f32, {1}), -1); }); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("standard deviation -1")));
}

// Initialisers.

TEST(Initializers, CountFansOfDenseAndConvolutionWeights) {
  EXPECT_EQ(fans_of({784, 10}).in, 784);
  EXPECT_EQ(fans_of({784, 10}).out, 10);
  EXPECT_EQ(fans_of({64, 32, 5, 3}).in, 32 * 15);
  EXPECT_EQ(fans_of({64, 32, 5, 3}).out, 64 * 15);
  EXPECT_EQ(fans_of({7}).in, 7);
  EXPECT_EQ(fans_of({}).out, 1);
}

TEST(Initializers, HaveTheVarianceThatTheFansAskFor) {
  using Initializer = Output (*)(const Scope&, DType, Shape, std::int64_t);
  const Shape shape{500, 1500};
  for (const auto& [make, variance] : {std::pair<Initializer, double>{glorot_uniform, 2.0 / 2000},
                                       {glorot_normal, 2.0 / 2000},
                                       {he_uniform, 2.0 / 500},
                                       {he_normal, 2.0 / 500}}) {
    const Tensor weights = draw([&, make = make](Scope& s) { return make(s, DType::f32, shape, 0); })[0];
    const Moments m = moments<float>(weights);
    const auto count = static_cast<double>(weights.elements());
    EXPECT_NEAR(m.mean, 0, 5 * std::sqrt(variance / count));
    // The kurtosis of neither distribution exceeds 3, so √2 bounds the standard error.
    EXPECT_NEAR(m.variance, variance, 5 * variance * std::sqrt(2 / count));
  }
}

TEST(Initializers, UniformOnesStayWithinTheirLimit) {
  const Tensor weights = draw([](Scope& s) { return glorot_uniform(s, DType::f32, {30, 20}); })[0];
  const float limit = std::sqrt(6.0f / 50);
  EXPECT_THAT(weights.span<float>(), Each(AllOf(Ge(-limit), Le(limit))));
  EXPECT_GT(*std::max_element(weights.span<float>().begin(), weights.span<float>().end()), 0.95f * limit);
}

}  // namespace
}  // namespace kolo
