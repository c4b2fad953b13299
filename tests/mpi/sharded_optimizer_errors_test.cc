// What updates in parts refuse, and how they end and fail on all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/debugging.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/rules.h>
#include <tests/core/training/temporary_directory.h>
#include <tests/mpi/sharded_training.h>

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ShardedOptimizer, RefusesToGiveAGradientOfWhichItHasAPart) {
  if (size() == 1) GTEST_SKIP() << "one rank has whole gradients";
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), zeros(s, DType::f32, {100}));
  DistributedOptimizer optimizer(make_optimizer("sgd"), sharded());
  const auto pairs = optimizer.compute_gradients(s, reduce_sum(s, square(s, w)));
  const Operation train = optimizer.apply_gradients(s, pairs);
  const Operation initializer = global_variables_initializer(s);
  Session session(graph);
  session.run(initializer);
  session.run(train);
  EXPECT_THAT([&] { session.run(pairs[0].gradient); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("the reduced gradient of \"w\" was asked for, but each rank has a part of it")));
  session.run(train);
}

// The overflow is in one element of one rank: in the part of one rank.
TEST(ShardedOptimizer, SkipsTheUpdateOfAllRanksWhereOnePartIsNotFinite) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), ones(s, DType::f32, {100}));
  const Output gradient = placeholder(s, DType::f32, {100});
  DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0),
                                 {.loss_scale = DynamicLossScale{.initial = 4}, .sharded = true});
  const Operation train = optimizer.minimize(s, reduce_sum(s, mul(s, w, gradient)));
  const Operation initializer = global_variables_initializer(s);
  Session session(graph);
  session.run(initializer);
  Tensor bad = Tensor::zeros(DType::f32, {100}), good = numbers({100}, 3);
  if (rank() == size() - 1) bad.data<float>()[99] = std::numeric_limits<float>::infinity();
  const auto sum_of_w = [&] {
    const Tensor value = session.run(w.read());
    return std::accumulate(value.data<float>(), value.data<float>() + 100, 0.0);
  };
  session.run(train, {{gradient, bad}});
  EXPECT_EQ(sum_of_w(), 100);
  EXPECT_EQ(session.run(optimizer.loss_scale().read()).value<float>(), 2);
  session.run(train, {{gradient, good}});
  double sum = 0;
  for (int i = 0; i < 100; ++i) sum += good.data<float>()[i];
  EXPECT_NEAR(sum_of_w(), 100 - sum, 1e-3);
  EXPECT_EQ(session.run(find_global_step(graph).read()).value<std::int64_t>(), 1);
}

TEST(ShardedOptimizer, SaysWhatItDoesNotGoWith) {
  const auto make = [](const char* inner, Options options) {
    return [inner, options] { DistributedOptimizer(make_optimizer(inner), sharded(options)); };
  };
  EXPECT_THAT(make("sgd", {.op = ReduceOp::adasum}),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("not by adasum")));
  EXPECT_THAT(
      make("sgd", {.compression = powersgd_compression()}),
      ThrowsMessage<InvalidArgumentError>(HasSubstr("compression none, fp16 and bf16, not with powersgd")));
  EXPECT_THAT(
      make("sgd", {.compression = topk_compression(0.1)}),
      ThrowsMessage<InvalidArgumentError>(HasSubstr("compression none, fp16 and bf16, not with topk")));
  EXPECT_THAT(make("sgd", {.skip_synchronize = true}),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("skip_synchronize")));
}

// The trunk stands behind another head each time, so that the ranks own other parts of it.
TEST(ShardedOptimizer, RefusesAVariableThatIsDividedInTwoWays) {
  if (size() == 1) GTEST_SKIP() << "one rank has whole variables";
  Graph graph;
  Scope s(graph);
  const Variable trunk(s.named("trunk"), ones(s, DType::f32, {100})),
      a(s.named("a"), ones(s, DType::f32, {20})), b(s.named("b"), ones(s, DType::f32, {1000}));
  const auto loss = [&](const Variable& head) {
    return add(s, reduce_sum(s, square(s, trunk)), reduce_sum(s, square(s, head)));
  };
  DistributedOptimizer optimizer(make_optimizer("adam"), sharded());
  const std::vector<Variable> with_a = {trunk, a}, with_b = {trunk, b};
  optimizer.apply_gradients(s, optimizer.compute_gradients(s, loss(a), with_a));
  const auto pairs = optimizer.compute_gradients(s, loss(b), with_b);
  EXPECT_THAT(
      [&] { optimizer.apply_gradients(s, pairs); },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("variable \"trunk\" is updated by"),
                                                HasSubstr("divide it among the ranks in different"))));
  // The same division is fine.
  optimizer.apply_gradients(s, optimizer.compute_gradients(s, loss(a), with_a));
}

TEST(ShardedOptimizer, AppliesTheGradientsOfOneComputationTogether) {
  if (size() == 1) GTEST_SKIP() << "one rank has whole variables";
  Graph graph;
  Scope s(graph);
  const Variable a(s.named("a"), ones(s, DType::f32, {20})), b(s.named("b"), ones(s, DType::f32, {1000}));
  DistributedOptimizer optimizer(make_optimizer("sgd"), sharded());
  const auto pairs =
      optimizer.compute_gradients(s, add(s, reduce_sum(s, square(s, a)), reduce_sum(s, square(s, b))));
  const std::span<const GradientPair> all(pairs);
  optimizer.apply_gradients(s, all.first(1));
  EXPECT_THAT([&] { optimizer.apply_gradients(s, all.last(1)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("all of them belong in one apply_gradients")));
}

TEST(ShardedOptimizer, RefusesSlicesUnlessTheyBecomeWhole) {
  const auto gradients = [](Options options) {
    Graph graph;
    Scope s(graph);
    const Variable table(s.named("table"), zeros(s, DType::f32, {9, 2}));
    const Output rows = gather(s, table, constant(s, Tensor::of<std::int32_t>({1}, {3})));
    DistributedOptimizer optimizer(make_optimizer("adam"), std::move(options));
    optimizer.apply_gradients(s, optimizer.compute_gradients(s, rows));
  };
  if (size() > 1) {
    EXPECT_THAT([&] { gradients(sharded()); },
                ThrowsMessage<InvalidArgumentError>(
                    AllOf(HasSubstr("\"table\" is slices"), HasSubstr("sparse_as_dense"))));
  }
  gradients(sharded({.sparse_as_dense = true}));
}

TEST(ShardedOptimizer, IsComparedBetweenTheRanks) {
  if (size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  Training training(make_optimizer("adam"), rank() == 0 ? sharded() : Options{});
  Session session(training.graph);
  session.run(training.initializer);
  EXPECT_THAT([&] { training.run(session); },
              ThrowsMessage<FailedPreconditionError>(
                  AllOf(HasSubstr("Ranks disagree on the training step"), HasSubstr("sharded is true"))));
}

std::int64_t monitored_steps(std::vector<std::shared_ptr<SessionRunHook>> hooks, int runs) {
  Training training(make_optimizer("adam"), sharded(small_buckets()));
  MonitoredTrainingSession session(training.graph, {.hooks = std::move(hooks)});
  for (int run = 0; run < runs && !session.should_stop(); ++run)
    session.run({training.train}, {{training.factor, Tensor::scalar(0.25f)}});
  session.close();
  return session.global_step();
}

TEST(ShardedOptimizer, StopsAllRanksAfterTheSameStep) {
  EXPECT_EQ(monitored_steps({std::make_shared<StopAtStepHook>(rank() == 0 ? 3 : 1000)}, 100), 3);
}

TEST(ShardedOptimizer, EndsWithTheDataOfOneRank) {
  EXPECT_EQ(monitored_steps({}, rank() == size() - 1 ? 4 : 100), 4);
}

TEST(ShardedOptimizer, TellsTheOtherRanksOfAFailure) {
  if (size() == 1) GTEST_SKIP() << "one rank has nobody to tell";
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), ones(s, DType::f32, {1000}));
  const Output x = placeholder(s, DType::f32, {});
  DistributedOptimizer optimizer(make_optimizer("adam"), sharded());
  const Operation train = optimizer.minimize(s, reduce_sum(s, mul(s, w, check_numerics(s, x, "x"))));
  MonitoredTrainingSession session(graph);
  const bool fails = rank() == size() - 1;
  try {
    for (int run = 0; run < 4; ++run)
      session.run({train}, {{x, Tensor::scalar(fails && run == 2 ? std::nanf("") : 1.0f)}});
    ADD_FAILURE() << "the step was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), fails ? Code::invalid_argument : Code::aborted) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("x : Tensor had NaN values"));
  }
}

// Between the reduction and the gathering: the learning rate is checked by the update alone.
TEST(ShardedOptimizer, TellsTheOtherRanksOfAFailureInItsUpdate) {
  if (size() == 1) GTEST_SKIP() << "one rank has nobody to tell";
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), ones(s, DType::f32, {1000}));
  const Output rate = placeholder(s, DType::f32, {});
  DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(check_numerics(s, rate, "rate")),
                                 sharded());
  const Operation train = optimizer.minimize(s, reduce_sum(s, square(s, w)));
  MonitoredTrainingSession session(graph);
  const bool fails = rank() == 0;
  try {
    for (int run = 0; run < 4; ++run)
      session.run({train}, {{rate, Tensor::scalar(fails && run == 2 ? std::nanf("") : 0.1f)}});
    ADD_FAILURE() << "the step was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), fails ? Code::invalid_argument : Code::aborted) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("rate : Tensor had NaN values"));
  }
}

class ShardedCheckpoint : public testing::Test {
 protected:
  // A program that goes on from the newest checkpoint, until the global step is `last`, and writes another.
  std::vector<std::string> train_to(std::int64_t last, Options options, bool keeps = true) {
    Training training(make_optimizer("adam"), std::move(options));
    MonitoredTrainingSessionOptions monitored;
    if (keeps) monitored.checkpoint_dir = rank() == 0 ? folder_.path() : "/proc/none";
    monitored.save_checkpoint_steps = 1000;
    MonitoredTrainingSession session(training.graph, monitored);
    while (session.global_step() < last)
      session.run({training.train}, {{training.factor, Tensor::scalar(0.25f)}});
    auto state = training.state(session.session());
    session.close();
    return state;
  }

  TemporaryDirectory folder_;
};

TEST_F(ShardedCheckpoint, FitsThePlainOptimizerAndBack) {
  const auto uninterrupted = train_to(8, small_buckets(), false);
  train_to(2, small_buckets());
  train_to(4, sharded(small_buckets()));
  // Other ranges of the same slots.
  train_to(6, sharded());
  EXPECT_EQ(train_to(8, small_buckets()), uninterrupted);
}

}  // namespace
}  // namespace kolo
