// What the options of DistributedOptimizer make of the ranks' gradients: rows 9, 37 and 39 of the worked
// examples, and their like on every number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/debugging.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/hooks.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/optimizer/clipping.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/registry.h>
#include <kolo/optimizer/rules.h>

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// SGD on w = 1 whose gradient is fed.
class FedGradient {
 public:
  explicit FedGradient(DistributedOptimizerOptions options, double rate = 0.1)
      : optimizer(std::make_unique<GradientDescentOptimizer>(rate), std::move(options)) {
    train = optimizer.minimize(s, mul(s, w, gradient));
    initializer = global_variables_initializer(s);
    session.run(initializer);
  }
  /// w after a step in which this rank's gradient is `value`.
  float step(float value) {
    session.run(train, {{gradient, Tensor::scalar(value)}});
    return session.run(w.read()).value<float>();
  }
  std::int64_t global_step() { return session.run(find_global_step(graph).read()).value<std::int64_t>(); }

  Graph graph;
  Scope s{graph};
  Variable w{s.named("w"), constant(s, 1.0f)};
  Output gradient = placeholder(s, DType::f32, {});
  DistributedOptimizer optimizer;
  Operation train, initializer;
  Session session{graph};
};

// 2, 4, 6, … on ranks 0, 1, 2, …: R + 1 on average.
float even() { return 2.0f * static_cast<float>(rank() + 1); }

// Row 37: gradients (2,4), then (6,8), on two ranks.
TEST(BackwardPasses, ChangeTheVariableInTheLastPassAlone) {
  FedGradient training({.backward_passes_per_step = 2});
  EXPECT_EQ(training.step(even()), 1);
  EXPECT_EQ(training.global_step(), 0);
  const double first = size() + 1, second = first + 4;
  EXPECT_NEAR(training.step(even() + 4), 1 - 0.1 * (first + second), 1e-6);
  EXPECT_EQ(training.global_step(), 1);
  EXPECT_NEAR(training.step(even()), 1 - 0.1 * (first + second), 1e-6) << "the sum starts anew";
  EXPECT_NEAR(training.step(even()), 1 - 0.1 * (3 * first + second), 1e-6);
  EXPECT_EQ(training.global_step(), 2);
}

TEST(BackwardPasses, AverageTheirGradientsWhereAsked) {
  FedGradient training({.backward_passes_per_step = 2, .average_aggregated_gradients = true});
  training.step(even());
  EXPECT_NEAR(training.step(even() + 4), 1 - 0.1 * (2 * size() + 6) / 2, 1e-6);
}

TEST(BackwardPasses, LeaveSlotsAloneUntilTheLastOne) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, 1.0f));
  const Output gradient = placeholder(s, DType::f32, {});
  DistributedOptimizer optimizer(make_optimizer("adam"), {.backward_passes_per_step = 3});
  const Operation train = optimizer.minimize(s, mul(s, w, gradient));
  const Operation initializer = global_variables_initializer(s);
  Session session(graph);
  session.run(initializer);
  const auto m = [&] { return session.run(optimizer.find_slot(w, "m").read()).value<float>(); };
  const Feeds feeds = {{gradient, Tensor::scalar(1.0f)}};
  for (int pass = 0; pass < 2; ++pass) session.run(train, feeds);
  EXPECT_EQ(m(), 0);
  EXPECT_NEAR(session.run("beta1_power:0").value<float>(), 0.9, 1e-7);
  session.run(train, feeds);
  EXPECT_NEAR(m(), 0.1 * 3, 1e-6);
}

TEST(BackwardPasses, ClipTheReducedSum) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, 1.0f));
  const Output gradient = placeholder(s, DType::f32, {});
  DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0),
                                 {.backward_passes_per_step = 2});
  const auto pairs = optimizer.compute_gradients(s, mul(s, w, gradient));
  const Operation train = optimizer.apply_gradients(s, clip_by_global_norm(s, pairs, 0.25));
  const Operation initializer = global_variables_initializer(s);
  Session session(graph);
  session.run(initializer);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(session.run(w.read()).value<float>(), 1);
    session.run(train, {{gradient, Tensor::scalar(even())}});
  }
  EXPECT_EQ(session.run(w.read()).value<float>(), 0.75);
}

// A monitored session over steps of two passes; runs until it says stop, or for `runs` runs of this rank.
std::int64_t monitored_steps(std::vector<std::shared_ptr<SessionRunHook>> hooks, int runs) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, 1.0f));
  DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0),
                                 {.backward_passes_per_step = 2});
  const Operation train = optimizer.minimize(s, mul(s, w, constant(s, 1.0f)));
  MonitoredTrainingSession session(graph, {.hooks = std::move(hooks)});
  for (int run = 0; run < runs && !session.should_stop(); ++run) session.run({train});
  session.close();
  return session.global_step();
}

TEST(BackwardPasses, StopAllRanksAfterTheSameUpdate) {
  EXPECT_EQ(monitored_steps({std::make_shared<StopAtStepHook>(3)}, 100), 3);
}

// The last rank's data ends between two passes of an update: nobody makes that update.
TEST(BackwardPasses, EndWithTheDataOfOneRankInTheMiddleOfAnUpdate) {
  EXPECT_EQ(monitored_steps({}, rank() == size() - 1 ? 5 : 100), 2);
}

TEST(BackwardPasses, TellTheOtherRanksOfAFailureInALocalPass) {
  if (size() == 1) GTEST_SKIP() << "one rank has nobody to tell";
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, 1.0f));
  const Output x = placeholder(s, DType::f32, {});
  DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0),
                                 {.backward_passes_per_step = 2});
  const Operation train = optimizer.minimize(s, mul(s, w, check_numerics(s, x, "x")));
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

// Row 9: gradients 1, 2, 3, 6 of four ranks.
TEST(Predivision, LeavesTheAverage) {
  constexpr float kGradients[] = {1, 2, 3, 6};
  FedGradient training({.gradient_predivide_factor = 2}, 1);
  float sum = 0;
  for (int r = 0; r < size(); ++r) sum += kGradients[r];
  EXPECT_NEAR(training.step(kGradients[rank()]), 1 - sum / static_cast<float>(size()), 1e-6);
}

TEST(Compression, AveragesInSixteenBits) {
  for (const auto& compression : {fp16_compression(), bf16_compression()}) {
    FedGradient training({.compression = compression}, 1);
    // Small whole numbers are exact in both types.
    EXPECT_NEAR(training.step(even()), -size(), 0.01 * size()) << compression->name();
  }
}

TEST(Compression, RoundsToTheTypeThatTravels) {
  if (size() == 1) GTEST_SKIP() << "one rank does not compress";
  FedGradient half({.compression = fp16_compression()}, 1), brain({.compression = bf16_compression()}, 1);
  EXPECT_EQ(half.step(1 + 1.0f / 4096), 0) << "1 + 2⁻¹² is 1 in f16";
  EXPECT_EQ(brain.step(1 + 1.0f / 512), 0) << "1 + 2⁻⁹ is 1 in bf16";
}

// Row 39.
TEST(Compression, ReportsAnOverflowOnEveryRankWithTheTensorsName) {
  if (size() == 1) GTEST_SKIP() << "one rank does not compress";
  FedGradient training({.compression = fp16_compression()});
  EXPECT_THAT(
      [&] { training.step(rank() == 0 ? 1e5f : 1.0f); },
      ThrowsMessage<InvalidArgumentError>(
          AllOf(HasSubstr("the gradient of \"w\" is not finite after fp16 compression"), HasSubstr("Inf"))));
}

TEST(LossScale, SkipsTheStepOfAllRanksWhereOneGradientIsNotFinite) {
  FedGradient training({.loss_scale = DynamicLossScale{.initial = 1024}});
  const auto scale = [&] {
    return training.session.run(training.optimizer.loss_scale().read()).value<float>();
  };
  const float bad = rank() == size() - 1 ? std::numeric_limits<float>::infinity() : 1.0f;
  EXPECT_EQ(training.step(bad), 1);
  EXPECT_EQ(training.global_step(), 0);
  EXPECT_EQ(scale(), 512);
  EXPECT_NEAR(training.step(even()), 1 - 0.1 * (size() + 1), 1e-6);
  EXPECT_EQ(training.global_step(), 1);
  EXPECT_EQ(scale(), 512);
}

TEST(LossScale, GrowsAfterSomeGoodStepsInARow) {
  FedGradient training({.loss_scale = DynamicLossScale{.initial = 8, .growth_steps = 2, .maximum = 16}});
  const auto scale = [&] {
    return training.session.run(training.optimizer.loss_scale().read()).value<float>();
  };
  std::vector<float> scales;
  for (const float gradient : {1.0f, 1.0f, std::nanf(""), 1.0f, 1.0f, 1.0f, 1.0f}) {
    training.step(gradient);
    scales.push_back(scale());
  }
  EXPECT_THAT(scales, ElementsAre(8, 16, 8, 8, 16, 16, 16));
}

TEST(LossScale, TurnsAnOverflowOfTheCompressionIntoASkippedStep) {
  if (size() == 1) GTEST_SKIP() << "one rank does not compress";
  FedGradient training({.compression = fp16_compression(), .loss_scale = DynamicLossScale{.initial = 1024}});
  EXPECT_EQ(training.step(100), 1) << "100 · 1024 is beyond f16";
  EXPECT_NEAR(training.step(1), 0.9, 1e-6);
}

TEST(LossScale, SkipsAllBackwardPassesOfAStep) {
  FedGradient training({.backward_passes_per_step = 2, .loss_scale = DynamicLossScale{.initial = 4}});
  training.step(std::nanf(""));
  EXPECT_EQ(training.step(1), 1);
  training.step(1);
  EXPECT_NEAR(training.step(1), 0.8, 1e-6);
}

// Rows 29 and 30 of the worked examples at once: two variables in one bucket, each by itself.
TEST(Adasum, CombinesEachGradientByItself) {
  if (size() != 2) GTEST_SKIP() << "an example of two ranks";
  Graph graph;
  Scope s(graph);
  const bool first = rank() == 0;
  const Variable a(s.named("a"), zeros(s, DType::f32, {2})), b(s.named("b"), zeros(s, DType::f32, {2}));
  const Output of_a = constant(s, Tensor::of<float>({2}, {2, 0}));
  const Output of_b = constant(s, Tensor::of<float>({2}, {1, first ? 0.0f : 1.0f}));
  DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0), {.op = ReduceOp::adasum});
  const Operation train = optimizer.minimize(s, add(s, mul(s, a, of_a), mul(s, b, of_b)));
  const Operation initializer = global_variables_initializer(s);
  Session session(graph);
  session.run(initializer);
  session.run(train);
  const Tensor new_a = session.run(a.read()), new_b = session.run(b.read());
  EXPECT_THAT(new_a.span<float>(), ElementsAre(-2, 0));
  EXPECT_THAT(new_b.span<float>(), ElementsAre(-1.25, -0.75));
}

TEST(Adasum, RefusesSlices) {
  if (size() == 1) GTEST_SKIP() << "one rank keeps its slices";
  Graph graph;
  Scope s(graph);
  const Variable table(s.named("table"), zeros(s, DType::f32, {9, 2}));
  const Output rows = gather(s, table, constant(s, Tensor::of<std::int32_t>({1}, {3})));
  DistributedOptimizer optimizer(make_optimizer("sgd"), {.op = ReduceOp::adasum});
  EXPECT_THAT([&] { optimizer.compute_gradients(s, rows); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("adasum is not defined for slices (\"table\")")));
}

TEST(SkipSynchronize, LeavesTheReductionToTheCaller) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, 1.0f));
  DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0), {.skip_synchronize = true});
  const auto local = optimizer.compute_gradients(s, mul(s, w, constant(s, even())));
  const auto reduced = optimizer.synchronize(s, local);
  const Operation train = optimizer.apply_gradients(s, reduced);
  const Operation initializer = global_variables_initializer(s);
  Session session(graph);
  session.run(initializer);
  EXPECT_EQ(session.run(local[0].gradient).value<float>(), even());
  session.run(train);
  EXPECT_NEAR(session.run(w.read()).value<float>(), -size(), 1e-6);
}

// Bytes of four variables after three steps of Adam towards another number on each rank.
std::string trained(const std::function<DistributedOptimizerOptions(const std::vector<Variable>&)>& options) {
  Graph graph;
  Scope s(graph);
  std::vector<Variable> variables;
  Output loss = constant(s, 0.0f);
  for (const std::int64_t elements : {300, 1, 70000, 5}) {
    variables.push_back(Variable(s.named("v"), ones(s, DType::f32, {elements})));
    const Output goal = fill(s, DType::f32, {elements}, 0.1 * (rank() + 1));
    loss = add(s, loss, reduce_sum(s, square(s, sub(s, variables.back(), goal))));
  }
  DistributedOptimizer optimizer(make_optimizer("adam"), options(variables));
  const Operation train = optimizer.minimize(s, loss);
  const Operation initializer = global_variables_initializer(s);
  Session session(graph);
  session.run(initializer);
  for (int i = 0; i < 3; ++i) session.run(train);
  std::string bytes;
  for (const Variable& variable : variables) {
    const Tensor value = session.run(variable.read());
    bytes.append(reinterpret_cast<const char*>(value.raw()), value.bytes());
  }
  return bytes;
}

TEST(Groups, ChangeNoResult) {
  if (size() > 2) GTEST_SKIP() << "the order of more than two summands depends on their place in the bucket";
  const std::string plain = trained([](const auto&) { return DistributedOptimizerOptions{}; });
  EXPECT_EQ(trained([](const auto&) { return DistributedOptimizerOptions{.num_groups = 2}; }), plain);
  EXPECT_EQ(trained([](const std::vector<Variable>& v) {
              return DistributedOptimizerOptions{.groups = {{v[0], v[3]}, {v[1]}}};
            }),
            plain);
}

TEST(DistributedOptimizerOptions, ThatDifferAreFoundBeforeTheFirstStep) {
  if (size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  FedGradient training({.backward_passes_per_step = rank() == 0 ? 2 : 3});
  EXPECT_THAT([&] { training.step(1); },
              ThrowsMessage<FailedPreconditionError>(AllOf(HasSubstr("Ranks disagree on the training step"),
                                                           HasSubstr("backward_passes_per_step is 2"))));
}

}  // namespace
}  // namespace kolo
