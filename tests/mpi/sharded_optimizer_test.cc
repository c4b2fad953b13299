// Updates of which each rank makes its part: the same bits as whole updates, row 49 of the worked examples
// and its like for every optimizer, and state for the own part alone.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/debugging.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/core/training/hooks.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/optimizer/clipping.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/registry.h>
#include <kolo/optimizer/rules.h>

#include "tests/core/training/temporary_directory.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Options = DistributedOptimizerOptions;

// Variables of many shapes, some of which lie on several ranks, and a loss whose gradients differ from rank
// to rank, from element to element and from step to step.
const std::vector<Shape> kShapes = {{37, 11}, {5}, {}, {1001}, {0, 3}, {64, 33}, {2, 3, 4}, {300}};

// 1, a number of many digits for each element: unlike on all ranks where it depends on `seed`.
Tensor numbers(const Shape& shape, int seed) {
  Tensor all(DType::f32, shape);
  for (std::int64_t i = 0; i < all.elements(); ++i)
    all.data<float>()[i] =
        std::sin(static_cast<float>(i + 1) * 0.37f + static_cast<float>(seed) * 1.7f) * 1.3f + 0.01f;
  return all;
}

std::string bytes_of(const Tensor& tensor) {
  return tensor.bytes() == 0 ? "" : std::string(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
}

class Training {
 public:
  using Change = std::function<std::vector<GradientPair>(const Scope&, std::vector<GradientPair>)>;

  Training(std::unique_ptr<Optimizer> inner, Options options, const std::vector<Shape>& shapes = kShapes,
           const Change& change = nullptr)
      : optimizer(std::move(inner), std::move(options)) {
    Output sum = constant(s, 0.0f);
    for (const Shape& shape : shapes) {
      const int i = static_cast<int>(variables.size());
      variables.emplace_back(s.named(fmt::format("v{}", i)), constant(s, numbers(shape, i)));
      const Output goal = constant(s, numbers(shape, 100 * rank() + i));
      sum = add(s, sum, reduce_sum(s, mul(s, square(s, sub(s, variables.back(), goal)), factor)));
    }
    loss = sum;
    auto pairs = optimizer.compute_gradients(s, loss);
    if (change) pairs = change(s, pairs);
    step = get_or_create_global_step(s);
    train = optimizer.apply_gradients(s, pairs, {.global_step = step});
    initializer = global_variables_initializer(s);
  }

  void run(Session& session, float value = 0.25f) { session.run(train, {{factor, Tensor::scalar(value)}}); }
  /// The bytes of each variable, and the global step.
  std::vector<std::string> state(Session& session) const {
    std::vector<std::string> all;
    for (const Variable& variable : variables) all.push_back(bytes_of(session.run(variable.read())));
    all.push_back(bytes_of(session.run(step.read())));
    return all;
  }
  std::vector<std::string> after(int steps) {
    Session session(graph);
    session.run(initializer);
    for (int i = 0; i < steps; ++i) run(session, 0.25f + 0.1f * static_cast<float>(i));
    return state(session);
  }

  Graph graph;
  Scope s{graph};
  Output factor = placeholder(s, DType::f32, {});
  Output loss;
  std::vector<Variable> variables;
  DistributedOptimizer optimizer;
  Variable step;
  Operation train, initializer;
};

// Several buckets.
Options small_buckets(Options options = {}) {
  options.first_bucket_bytes = 2048;
  options.bucket_bytes = 6000;
  return options;
}
Options sharded(Options options = {}) {
  options.sharded = true;
  return options;
}

// Row 49: three ranks, ten steps of Adam, 1,001 elements.
TEST(ShardedOptimizer, MakesTheSameBitsAsAdamOnWholeVariables) {
  const auto plain = Training(make_optimizer("adam"), {}, {{1001}}).after(10);
  EXPECT_EQ(Training(make_optimizer("adam"), sharded(), {{1001}}).after(10), plain);
}

class ElementWise : public testing::TestWithParam<std::string> {};

TEST_P(ElementWise, MakesTheSameBitsInPartsOfManyVariables) {
  const auto make = [&] { return make_optimizer(GetParam(), {.learning_rate = 0.01}); };
  const auto plain = Training(make(), small_buckets()).after(5);
  EXPECT_EQ(Training(make(), sharded(small_buckets())).after(5), plain);
}

INSTANTIATE_TEST_SUITE_P(Rules, ElementWise,
                         testing::Values("sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw",
                                         "adadelta", "ftrl", "lion"),
                         [](const auto& info) { return info.param; });

TEST(ShardedOptimizer, KnowsCenteredRmsProp) {
  const auto make = [] { return std::make_unique<RMSPropOptimizer>(RMSPropOptions{.centered = true}); };
  const auto plain = Training(make(), small_buckets()).after(4);
  EXPECT_EQ(Training(make(), sharded(small_buckets())).after(4), plain);
}

class NormBased : public testing::TestWithParam<std::string> {};

TEST_P(NormBased, TakesTheNormsOfWholeVariables) {
  const auto make = [&] { return make_optimizer(GetParam(), {.learning_rate = 0.05}); };
  Training plain(make(), small_buckets()), parts(make(), sharded(small_buckets()));
  Session whole(plain.graph), in_parts(parts.graph);
  whole.run(plain.initializer), in_parts.run(parts.initializer);
  for (int i = 0; i < 4; ++i) plain.run(whole), parts.run(in_parts);
  for (std::size_t v = 0; v < plain.variables.size(); ++v) {
    const Tensor a = whole.run(plain.variables[v].read()), b = in_parts.run(parts.variables[v].read());
    for (std::int64_t i = 0; i < a.elements(); ++i)
      ASSERT_NEAR(a.data<float>()[i], b.data<float>()[i], 1e-6 * std::abs(a.data<float>()[i]) + 1e-7)
          << plain.variables[v].name() << " element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, NormBased, testing::Values("lars", "lamb"),
                         [](const auto& info) { return info.param; });

std::int64_t elements_of_slots(Training& training, Session& session) {
  std::int64_t elements = 0;
  for (const char* slot : {"m", "v"})
    for (const Variable& variable : training.variables)
      elements += detail::storage_of(session, training.optimizer.find_slot(variable, slot)).value.elements();
  return elements;
}

TEST(ShardedOptimizer, KeepsStateForTheOwnPartAlone) {
  Training plain(make_optimizer("adam"), small_buckets()),
      parts(make_optimizer("adam"), sharded(small_buckets()));
  Session whole(plain.graph), in_parts(parts.graph);
  whole.run(plain.initializer), in_parts.run(parts.initializer);
  plain.run(whole), parts.run(in_parts);
  const std::int64_t all = elements_of_slots(plain, whole), own = elements_of_slots(parts, in_parts);
  // Ranges are whole pieces of 64 bytes of each bucket.
  EXPECT_NEAR(static_cast<double>(own), static_cast<double>(all) / size(), 2 * 16 * 8);
}

// Names, shapes and ranges by which a checkpoint puts the slots together again.
TEST(ShardedOptimizer, MarksItsSlotsByTheirNamesInThePlainOptimizer) {
  if (size() == 1) GTEST_SKIP() << "one rank has whole slots";
  Training plain(make_optimizer("adam"), small_buckets()),
      parts(make_optimizer("adam"), sharded(small_buckets()));
  for (std::size_t v = 0; v < kShapes.size(); ++v)
    for (const char* slot : {"m", "v"}) {
      const Variable part = parts.optimizer.find_slot(parts.variables[v], slot);
      const RankState state = rank_state(part);
      ASSERT_EQ(state.kind, RankState::Kind::part) << part.name();
      EXPECT_EQ(state.whole.name, plain.optimizer.find_slot(plain.variables[v], slot).name());
      EXPECT_EQ(state.whole.shape, kShapes[v]);
      EXPECT_EQ(state.range.count, part.shape().elements());
      EXPECT_LE(state.range.first + state.range.count, kShapes[v].elements());
    }
}

// Each bucket with a clipped gradient is reduced whole, so that all ranks find the same norm.
TEST(ShardedOptimizer, ClipsByTheGlobalNormOfWholeGradients) {
  const auto clip = [](const Scope& s, std::vector<GradientPair> pairs) {
    return clip_by_global_norm(s, pairs, 0.5);
  };
  const auto plain = Training(make_optimizer("adam"), small_buckets(), kShapes, clip).after(4);
  EXPECT_EQ(Training(make_optimizer("adam"), sharded(small_buckets()), kShapes, clip).after(4), plain);
}

TEST(ShardedOptimizer, KeepsTheBucketsWholeOfWhichTheGraphTakesAGradient) {
  const auto change = [](const Scope& s, std::vector<GradientPair> pairs) {
    global_norm(s.named("norm"), {pairs[3].gradient});
    return pairs;
  };
  Training plain(make_optimizer("adam"), small_buckets(), kShapes, change);
  Training parts(make_optimizer("adam"), sharded(small_buckets()), kShapes, change);
  Session whole(plain.graph), in_parts(parts.graph);
  whole.run(plain.initializer), in_parts.run(parts.initializer);
  const auto norm = [](Training& training, Session& session) {
    return session.run({Fetch("norm:0"), Fetch(training.train)}, {{training.factor, Tensor::scalar(0.5f)}})[0]
        .value<float>();
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(norm(parts, in_parts), norm(plain, whole)) << i;
  EXPECT_EQ(parts.state(in_parts), plain.state(whole));
}

// One run reduces the gradients alone, the next one updates with them, too.
TEST(ShardedOptimizer, MayReduceInAStepThatUpdatesNothing) {
  Output norm;
  const auto change = [&](const Scope& s, std::vector<GradientPair> pairs) {
    Outputs gradients;
    for (const GradientPair& pair : pairs) gradients.push_back(pair.gradient);
    norm = global_norm(s, gradients);
    return pairs;
  };
  const auto norms = [&](const Options& options) {
    Training training(make_optimizer("adam"), options, kShapes, change);
    Session session(training.graph);
    session.run(training.initializer);
    std::vector<std::string> seen;
    for (int i = 0; i < 3; ++i) {
      for (int twice = 0; twice < 2; ++twice)
        seen.push_back(bytes_of(session.run(norm, {{training.factor, Tensor::scalar(0.5f)}})));
      training.run(session, 0.5f);
    }
    for (auto& bytes : training.state(session)) seen.push_back(std::move(bytes));
    return seen;
  };
  const auto plain = norms(small_buckets());
  EXPECT_EQ(norms(sharded(small_buckets())), plain);
}

// Gradients are reduced in every step, but applied in some.
TEST(ShardedOptimizer, MayUpdateUnderACondition) {
  const auto run = [](Options options) {
    Graph graph;
    Scope s(graph);
    const Variable w(s.named("w"), constant(s, numbers({1001}, 1)));
    const Output goes = placeholder(s, DType::boolean, {});
    DistributedOptimizer optimizer(make_optimizer("adam"), std::move(options));
    const auto pairs = optimizer.compute_gradients(
        s, reduce_sum(s, square(s, sub(s, w, constant(s, numbers({1001}, rank()))))));
    const auto update = [&](Scope branch) { return optimizer.apply_gradients(branch, pairs); };
    const auto nothing = [](const Scope& branch) { return group(branch, {}); };
    const Operation train = cond(s, goes, BranchEffect(update), BranchEffect(nothing));
    const Operation step = group(s, {train, pairs[0].gradient.node});
    const Operation initializer = global_variables_initializer(s);
    Session session(graph);
    session.run(initializer);
    for (const bool go : {true, false, false, true, false, true})
      session.run(step, {{goes, Tensor::scalar(go)}});
    return bytes_of(session.run(w.read()));
  };
  const auto plain = run({});
  EXPECT_EQ(run(sharded()), plain);
}

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

TEST(ShardedOptimizer, GoesWithTheOtherOptions) {
  const std::vector<Options> all = {
      {.op = ReduceOp::sum},
      {.gradient_predivide_factor = 2},
      {.compression = fp16_compression()},
      {.compression = bf16_compression()},
      {.backward_passes_per_step = 2},
      {.backward_passes_per_step = 2, .average_aggregated_gradients = true},
      {.num_groups = 3},
      {.loss_scale = DynamicLossScale{.initial = 256}},
      {.compression = fp16_compression(),
       .backward_passes_per_step = 2,
       .loss_scale = DynamicLossScale{.initial = 16}},
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto plain = Training(make_optimizer("adam"), small_buckets(all[i])).after(4);
    EXPECT_EQ(Training(make_optimizer("adam"), sharded(small_buckets(all[i]))).after(4), plain) << i;
  }
}

TEST(ShardedOptimizer, WaitsForAllGradientsWhereAskedTo) {
  const auto make = [](Options options) {
    auto training = std::make_unique<Training>(make_optimizer("adam"), std::move(options));
    return training;
  };
  const auto plain = make(small_buckets()), parts = make(sharded(small_buckets()));
  // The same loss once more, by an optimizer of its own whose gradients come all at once.
  for (Training* training : {plain.get(), parts.get()}) {
    Scope& s = training->s;
    const auto pairs =
        training->optimizer.compute_gradients(s, training->loss, training->variables, {.gate = Gate::graph});
    training->train = training->optimizer.apply_gradients(s, pairs, {.global_step = training->step});
    training->initializer = global_variables_initializer(s);
  }
  EXPECT_EQ(parts->after(3), plain->after(3));
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

TEST(ShardedOptimizer, AppliesWhatItHasComputedInAnyOrder) {
  const auto after = [](Options options) {
    Graph graph;
    Scope s(graph);
    const Variable w(s.named("w"), constant(s, numbers({1001}, 1)));
    DistributedOptimizer optimizer(make_optimizer("sgd", {.learning_rate = 0.1}), std::move(options));
    const auto loss = [&](int goal) {
      return reduce_sum(s, square(s, sub(s, w, constant(s, numbers({1001}, goal + 10 * rank())))));
    };
    const auto first = optimizer.compute_gradients(s, loss(2)),
               second = optimizer.compute_gradients(s, loss(3));
    const Operation one = optimizer.apply_gradients(s, first), two = optimizer.apply_gradients(s, second);
    const Operation initializer = global_variables_initializer(s);
    Session session(graph);
    session.run(initializer);
    for (int i = 0; i < 3; ++i) session.run(one), session.run(two);
    return bytes_of(session.run(w.read()));
  };
  const auto plain = after({});
  EXPECT_EQ(after(sharded()), plain);
}

// A gate waits for whole gradients, behind the casts and scales too.
TEST(ShardedOptimizer, WaitsForAllGradientsThatWereCast) {
  const auto after = [](Options options) {
    Graph graph;
    Scope s(graph);
    const Variable a(s.named("a"), constant(s, numbers({200}, 1))),
        b(s.named("b"), constant(s, numbers({1001}, 2)));
    DistributedOptimizer optimizer(make_optimizer("adam"), small_buckets(std::move(options)));
    const Output loss = add(s, reduce_sum(s, square(s, a)), reduce_sum(s, square(s, b)));
    const std::vector<Variable> variables = {a, b};
    const auto pairs = optimizer.compute_gradients(s, loss, variables, {.gate = Gate::graph});
    const Operation train = optimizer.apply_gradients(s, pairs);
    const Operation initializer = global_variables_initializer(s);
    Session session(graph);
    session.run(initializer);
    for (int i = 0; i < 3; ++i) session.run(train);
    return bytes_of(session.run(a.read())) + bytes_of(session.run(b.read()));
  };
  for (const Options& options :
       {Options{.compression = fp16_compression()}, Options{.compression = bf16_compression()},
        Options{.loss_scale = DynamicLossScale{.initial = 16}}}) {
    const auto plain = after(options);
    EXPECT_EQ(after(sharded(options)), plain);
  }
}

class OwnRule : public RuleOptimizer {
 public:
  OwnRule() : RuleOptimizer("OwnRule") {}

 protected:
  Operation apply(const Scope& s, Output gradient, const Variable& variable) override {
    return assign_sub(s, variable, gradient);
  }
};

class OwnElementWiseRule final : public OwnRule {
 public:
  explicit OwnElementWiseRule(bool keeps_a_scalar = false) : keeps_a_scalar_(keeps_a_scalar) {}
  bool is_element_wise() const override { return true; }

 protected:
  void create_slots(const Scope& s, std::span<const Variable> variables) override {
    if (!keeps_a_scalar_) return;
    for (const Variable& variable : variables)
      create_scalar(s, variable, variable.name() + "/OwnRule", Hyperparameter(1.0));
  }

 private:
  bool keeps_a_scalar_;
};

TEST(ShardedOptimizer, TakesAnOwnRuleThatSaysThatItIsElementWise) {
  EXPECT_THAT([] { DistributedOptimizer(std::make_unique<OwnRule>(), sharded()); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("\"OwnRule\" does not say"), HasSubstr("override is_element_wise"))));
  const auto plain = Training(std::make_unique<OwnRule>(), small_buckets()).after(3);
  EXPECT_EQ(Training(std::make_unique<OwnElementWiseRule>(), sharded(small_buckets())).after(3), plain);
}

TEST(ShardedOptimizer, RefusesStateThatHasNotTheShapeOfItsPart) {
  if (size() == 1) GTEST_SKIP() << "one rank has whole variables";
  EXPECT_THAT([] { Training(std::make_unique<OwnElementWiseRule>(true), sharded(), {{100}}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("\"v0/shard/OwnRule\" of shape []")));
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

}  // namespace
}  // namespace kolo
