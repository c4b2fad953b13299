// Compressions that keep what they leave out for later steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>

#include "tests/optimizer/small_training.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Compressed : public testing::Test {
 protected:
  void SetUp() override {
    if (size() == 1) GTEST_SKIP() << "one rank does not compress";
  }
};

// SGD(1) on w = 0 with fed gradients: −w is the sum of all that was applied.
class Training {
 public:
  Training(const Shape& shape, std::shared_ptr<const Compression> compression,
           ReduceOp op = ReduceOp::average)
      : w(s.named("w"), zeros(s, DType::f32, shape)),
        gradient(placeholder(s, DType::f32, shape)),
        optimizer(std::make_unique<GradientDescentOptimizer>(1.0),
                  {.op = op, .compression = std::move(compression)}) {
    train = optimizer.minimize(s, mul(s, w, gradient));
    const Operation initializer = global_variables_initializer(s);
    session.run(initializer);
  }
  std::vector<float> step(const Tensor& value) {
    session.run(train, {{gradient, value}});
    return elements<float>(session.run(w.read()));
  }
  std::vector<float> state(const std::string& name) { return elements<float>(session.run(name + ":0")); }

  Graph graph;
  Scope s{graph};
  Variable w;
  Output gradient;
  DistributedOptimizer optimizer;
  Operation train;
  Session session{graph};
};

// [n, m]; of rank `terms`, another one on each rank of the job.
Tensor matrix(std::int64_t n, std::int64_t m, int terms) {
  Tensor x = Tensor::zeros(DType::f32, {n, m});
  for (int t = 0; t < terms; ++t)
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < m; ++j)
        x.data<float>()[i * m + j] +=
            static_cast<float>((rank() + 1) * std::sin(1.0 + i * (t + 1)) * std::cos(0.3 * j * (t + 2)));
  return x;
}

// All ranks' matrices are multiples of one: their average is (R + 1) / 2 times rank 0's.
TEST_F(Compressed, PowerSgdIsExactForMatricesOfItsRank) {
  for (const int terms : {1, 2}) {
    Training training({16, 12}, powersgd_compression(terms));
    const Tensor own = matrix(16, 12, terms);
    const auto w = training.step(own);
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double average = own.data<float>()[i] / (rank() + 1.0) * (size() + 1) / 2;
      EXPECT_NEAR(w[i], -average, 2e-5 * (size() + 1)) << terms << " " << i;
    }
  }
}

// What is left out is not lost: what T equal gradients change w by tends to T times their average, though
// each step moves it along one direction alone.
TEST_F(Compressed, PowerSgdMakesUpForWhatItLeavesOut) {
  Training training({16, 12}, powersgd_compression(1));
  const Tensor own = matrix(16, 12, 3);
  std::vector<float> w;
  constexpr int kSteps = 200;
  for (int step = 0; step < kSteps; ++step) w = training.step(own);
  for (std::size_t i = 0; i < w.size(); ++i)
    EXPECT_NEAR(w[i] / kSteps, -own.data<float>()[i] / (rank() + 1) * static_cast<float>(size() + 1) / 2,
                0.05 * (size() + 1));
}

// Σ applied + the ranks' mean residual = Σ of the mean gradients, in every step.
TEST_F(Compressed, PowerSgdKeepsExactlyWhatItLeavesOut) {
  Training training({16, 12}, powersgd_compression(2));
  const Tensor own = matrix(16, 12, 3);
  std::vector<float> w;
  for (int step = 0; step < 3; ++step) w = training.step(own);
  const auto error = training.state("w/powersgd_error");
  std::string bytes(reinterpret_cast<const char*>(error.data()), error.size() * sizeof(float));
  std::vector<double> mean(error.size());
  for (const std::string& theirs : world_group().allgather(bytes))
    for (std::size_t i = 0; i < mean.size(); ++i)
      mean[i] += reinterpret_cast<const float*>(theirs.data())[i] / static_cast<double>(size());
  for (std::size_t i = 0; i < w.size(); ++i)
    EXPECT_NEAR(-w[i] + mean[i], 3 * own.data<float>()[i] / (rank() + 1.0) * (size() + 1) / 2,
                1e-4 * (size() + 1));
}

TEST_F(Compressed, PowerSgdSumsWhereAsked) {
  Training training({16, 12}, powersgd_compression(1), ReduceOp::sum);
  const Tensor own = matrix(16, 12, 1);
  const auto w = training.step(own);
  EXPECT_NEAR(w[5], -own.data<float>()[5] / (rank() + 1) * static_cast<float>(size() * (size() + 1)) / 2,
              1e-4 * size());
  for (const float left : training.state("w/powersgd_error")) EXPECT_NEAR(left, 0, 1e-4 * size() * size());
}

TEST_F(Compressed, PowerSgdLeavesVectorsAlone) {
  Training training({3}, powersgd_compression(1));
  EXPECT_EQ(training.graph.find_node("w/powersgd_q"), nullptr);
  const float mean = static_cast<float>(size() + 1) / 2;
  EXPECT_THAT(training.step(Tensor::of<float>({3}, {1.0f * (rank() + 1), 0, 2.0f * (rank() + 1)})),
              ElementsAre(-mean, 0, -2 * mean));
}

TEST_F(Compressed, PowerSgdGoesOnAfterAGradientOfZerosOrNaN) {
  Training training({16, 12}, powersgd_compression(1));
  training.step(Tensor::zeros(DType::f32, {16, 12}));
  const Tensor own = matrix(16, 12, 1);
  const auto w = training.step(own);
  EXPECT_NEAR(w[5], -own.data<float>()[5] / (rank() + 1) * static_cast<float>(size() + 1) / 2, 1e-4 * size());
  Tensor bad = matrix(16, 12, 1);
  if (rank() == 0) bad.data<float>()[7] = std::nanf("");
  const auto error = training.state("w/powersgd_error");
  training.step(bad);
  EXPECT_EQ(training.state("w/powersgd_error"), error);
}

TEST_F(Compressed, TopKGivesTheLargestFirstAndTheOthersLater) {
  if (size() != 2) GTEST_SKIP() << "an example of two ranks";
  Training training({4}, topk_compression(0.25));
  const bool first = rank() == 0;
  EXPECT_THAT(
      training.step(first ? Tensor::of<float>({4}, {4, 1, 0, 0}) : Tensor::of<float>({4}, {0, 1, -6, 0})),
      ElementsAre(-2, 0, 3, 0));
  EXPECT_THAT(training.state("w/topk_error"), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(training.step(Tensor::zeros(DType::f32, {4})), ElementsAre(-2, -1, 3, 0));
  EXPECT_THAT(training.state("w/topk_error"), ElementsAre(0, 0, 0, 0));
}

TEST_F(Compressed, TopKMakesUpForWhatItLeavesOut) {
  Training training({10, 10}, topk_compression(0.05));
  const Tensor own = matrix(10, 10, 3);
  std::vector<float> w;
  constexpr int kSteps = 200;
  for (int step = 0; step < kSteps; ++step) w = training.step(own);
  for (std::size_t i = 0; i < w.size(); ++i)
    EXPECT_NEAR(w[i] / kSteps, -own.data<float>()[i] / (rank() + 1) * static_cast<float>(size() + 1) / 2,
                0.5 * (size() + 1));
}

// Two reductions in a step, one behind the other: the first one's flags are enough.
TEST_F(Compressed, PowerSgdEndsWithTheDataOfOneRank) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), zeros(s, DType::f32, {16, 12}));
  const Output gradient = placeholder(s, DType::f32, {16, 12});
  DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0),
                                 {.compression = powersgd_compression(1)});
  const Operation train = optimizer.minimize(s, mul(s, w, gradient));
  MonitoredTrainingSession session(graph);
  for (int step = 0; !session.should_stop(); ++step) {
    if (step == 3 && rank() == size() - 1) break;
    session.run({train}, {{gradient, matrix(16, 12, 1)}});
  }
  session.close();
  EXPECT_EQ(session.global_step(), 3);
}

TEST_F(Compressed, ResidualsAreEachRanksOwnAndFactorsAreShared) {
  Training power({16, 12}, powersgd_compression(1)), top({100}, topk_compression(0.1));
  const auto variable = [](const Training& training, const char* name) {
    return Variable::of(*training.graph.find_node(name));
  };
  EXPECT_EQ(rank_state(variable(power, "w/powersgd_error")).kind, RankState::Kind::own);
  EXPECT_NE(rank_state(variable(power, "w/powersgd_q")).kind, RankState::Kind::own);
  EXPECT_TRUE(rank_state(variable(power, "w/powersgd_q")).optional);
  EXPECT_EQ(rank_state(variable(top, "w/topk_error")).kind, RankState::Kind::own);
}

TEST_F(Compressed, RefusesAdasum) {
  EXPECT_THAT(
      [] {
        Training({16, 12}, powersgd_compression(1), ReduceOp::adasum);
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("powersgd(1) compression: op is adasum")));
}

}  // namespace
}  // namespace kolo
