// Row 47 of the worked examples, and the statistics and gradients of one process that has all samples.
#include <kolo/collectives/graph/collective_ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/debugging.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Row 47.
TEST(SyncBatchNorm, HasTheMeanAndVarianceOfAllSamples) {
  if (size() != 2) GTEST_SKIP() << "an example of two ranks";
  Graph graph;
  Scope s(graph);
  const Output x =
      constant(s, rank() == 0 ? Tensor::of<float>({2, 1}, {1, 3}) : Tensor::of<float>({3, 1}, {5, 7, 9}));
  const Output zero = zeros(s, DType::f32, {1}), one = ones(s, DType::f32, {1});
  const auto result = sync_batch_norm(s, x, one, zero, zero, one, {.epsilon = 0, .momentum = 0.5});
  Session session(graph);
  const auto values = session.run(
      {Fetch(result.mean), Fetch(result.variance), Fetch(result.moving_mean), Fetch(result.moving_variance)});
  EXPECT_EQ(values[0].value<float>(), 5);
  EXPECT_NEAR(values[1].value<float>(), 8, 1e-5);
  EXPECT_EQ(values[2].value<float>(), 2.5f);
  EXPECT_NEAR(values[3].value<float>(), 0.5 + 0.5 * 10, 1e-5) << "8 · 5 / 4 of the sample";
}

// Rank r has r + 1 samples [2, 3] of 3 · R (R + 1) / 2 in all: number i is a function of i.
Tensor samples(std::int64_t first, std::int64_t count, std::int64_t salt) {
  Tensor x(DType::f64, {count, 2, 3});
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x.data<double>()[i] =
        100 + static_cast<double>((7 * (6 * first + i) + salt * (6 * first + i + 3) % 11) % 13) / 3;
  return x;
}

struct Result {
  std::vector<double> y, dx, dscale, doffset;
};

template <typename Normalize>
Result run(std::int64_t first, std::int64_t count, const Normalize& normalize) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f64, {-1, 2, 3}), weights = placeholder(s, DType::f64, {-1, 2, 3});
  const Output scale = constant(s, Tensor::of<double>({2}, {2, -0.5})),
               offset = constant(s, Tensor::of<double>({2}, {1, 3}));
  const Output zero = zeros(s, DType::f64, {2});
  const Output y = normalize(s, x, scale, offset, zero, zero).y;
  const Outputs d = gradients(s, {mul(s, y, weights)}, {x, scale, offset});
  Session session(graph);
  const auto values = session.run({Fetch(y), Fetch(d[0]), Fetch(d[1]), Fetch(d[2])},
                                  {{x, samples(first, count, 1)}, {weights, samples(first, count, 5)}});
  const auto list = [](const Tensor& t) {
    return std::vector<double>(t.span<double>().begin(), t.span<double>().end());
  };
  return {list(values[0]), list(values[1]), list(values[2]), list(values[3])};
}

TEST(SyncBatchNorm, GivesWhatOneProcessWithAllSamplesGives) {
  const auto sync = [](const Scope& s, Output x, Output scale, Output offset, Output a, Output b) {
    return sync_batch_norm(s, x, scale, offset, a, b);
  };
  const auto alone = [](const Scope& s, Output x, Output scale, Output offset, Output a, Output b) {
    return batch_norm(s, x, scale, offset, a, b);
  };
  const std::int64_t first = rank() * (rank() + 1) / 2, count = rank() + 1;
  const Result mine = run(first, count, sync), whole = run(0, size() * (size() + 1) / 2, alone);
  for (std::size_t i = 0; i < mine.y.size(); ++i) {
    const auto k = static_cast<std::size_t>(6 * first) + i;
    EXPECT_NEAR(mine.y[i], whole.y[k], 1e-9) << i;
    EXPECT_NEAR(mine.dx[i], whole.dx[k], 1e-9) << i;
  }
  // Parameters have the gradient of the own samples, as in every layer.
  if (size() > 1) return;
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_NEAR(mine.dscale[c], whole.dscale[c], 1e-9);
    EXPECT_NEAR(mine.doffset[c], whole.doffset[c], 1e-9);
  }
}

TEST(SyncBatchNorm, TakesABatchOfNothingOnOneRank) {
  if (size() == 1) GTEST_SKIP() << "all of nothing has no mean";
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {-1, 1});
  const Output zero = zeros(s, DType::f32, {1}), one = ones(s, DType::f32, {1});
  const Output mean = sync_batch_norm(s, x, one, zero, zero, one).mean;
  Session session(graph);
  const Tensor batch = rank() == 0 ? Tensor(DType::f32, {0, 1}) : Tensor::of<float>({2, 1}, {4, 6});
  EXPECT_EQ(session.run(mean, {{x, batch}}).value<float>(), 5);
}

// A network with a layer of it: a step has three schedules.
class Network {
 public:
  Network() {
    const Output checked = check_numerics(s, x, "x");
    const BatchNormResult normal = sync_batch_norm(s, checked, scale, zeros(s, DType::f32, {2}),
                                                   zeros(s, DType::f32, {2}), ones(s, DType::f32, {2}));
    const Output y = check_numerics(s, mul(s, normal.y, poison), "y");
    DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(0.1));
    train = optimizer.minimize(s, square(s, sub(s, y, ones(s, DType::f32, {2}))));
  }
  Feeds feeds(float in_x = 0, float in_y = 1) const {
    const auto mine = static_cast<float>(rank());
    return {{x, Tensor::of<float>({2, 2}, {mine + in_x, 1, 2 * mine, 3})}, {poison, Tensor::scalar(in_y)}};
  }

  Graph graph;
  Scope s{graph};
  Output x = placeholder(s, DType::f32, {-1, 2}), poison = placeholder(s, DType::f32, {});
  Variable scale{s.named("scale"), ones(s, DType::f32, {2})};
  Operation train;
};

TEST(SyncBatchNorm, EndsWithTheDataOfOneRank) {
  Network network;
  MonitoredTrainingSession session(network.graph);
  for (int step = 0; !session.should_stop(); ++step) {
    if (step == 3 && rank() == size() - 1) break;
    session.run({network.train}, network.feeds());
  }
  session.close();
  EXPECT_EQ(session.global_step(), 3);
}

// Before and behind the layer's own reduction.
TEST(SyncBatchNorm, TellsAllRanksOfAFailureOfOne) {
  if (size() == 1) GTEST_SKIP() << "one rank has nobody to tell";
  for (const bool before : {true, false}) {
    Network network;
    MonitoredTrainingSession session(network.graph);
    session.run({network.train}, network.feeds());
    const bool fails = rank() == size() - 1;
    const float bad = std::nanf("");
    const Feeds feeds = !fails ? network.feeds() : before ? network.feeds(bad) : network.feeds(0, bad);
    try {
      session.run({network.train}, feeds);
      ADD_FAILURE() << "the step was run";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), fails ? Code::invalid_argument : Code::aborted) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("Tensor had NaN values"));
    }
  }
}

TEST(SyncBatchNorm, NeedsChannels) {
  Graph graph;
  Scope s(graph);
  const Output one = ones(s, DType::f32, {1});
  EXPECT_THAT([&] { sync_batch_norm(s, placeholder(s, DType::f32, {-1}), one, one, one, one); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("[?]")));
}

}  // namespace
}  // namespace kolo
