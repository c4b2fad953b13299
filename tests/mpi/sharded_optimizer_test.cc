// Updates of which each rank makes its part: the same bits as whole updates, row 49 of the worked examples
// and its like for every optimizer, and state for the own part alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/runtime/session_state.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/optimizer/clipping.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/rules.h>
#include <tests/mpi/sharded_training.h>

namespace kolo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

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

}  // namespace
}  // namespace kolo
