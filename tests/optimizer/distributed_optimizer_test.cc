#include <kolo/optimizer/distributed_optimizer.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/training/saver.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/registry.h>
#include <kolo/optimizer/rule_optimizer.h>

#include "tests/core/training/temporary_directory.h"
#include "tests/optimizer/small_training.h"

namespace kolo {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Strings = std::vector<std::string>;

const Node* reduction(const Graph& graph) {
  for (int id = 0; id < graph.num_nodes(); ++id)
    if (graph.node(id).op() == "GroupAllReduce") return &graph.node(id);
  return nullptr;
}

class DistributedOptimizerTest : public ::testing::Test {
 protected:
  Variable variable(const std::string& name) { return Variable(s.named(name), ones(s, DType::f32, {2})); }

  Graph graph;
  Scope s{graph};
};

TEST_F(DistributedOptimizerTest, ReducesTheGradientsThatExistInOneNode) {
  const Variable a = variable("a"), unused = variable("unused"), b = variable("b");
  DistributedOptimizer optimizer(make_optimizer("sgd"), {.bucket_bytes = 4096});
  const auto pairs = optimizer.compute_gradients(s, mul(s, a, b));
  const Node* node = reduction(graph);
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->attr<Strings>("names"), (Strings{"a", "b"}));
  EXPECT_EQ(node->attr<std::string>("reduction"), "average");
  EXPECT_EQ(node->attr<std::int64_t>("bucket_bytes"), 4096);
  EXPECT_EQ(node->attr<std::int64_t>("first_bucket_bytes"), 0);
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[0].gradient, (Output{node, 0}));
  EXPECT_FALSE(pairs[1].gradient);
  EXPECT_EQ(pairs[1].variable, unused);
  EXPECT_EQ(pairs[2].gradient, (Output{node, 1}));
  EXPECT_EQ(pairs[2].variable, b);
  EXPECT_EQ(pairs[2].gradient.shape(), Shape({2}));
}

// The other ranks may have gradients, and must then learn that this one has none.
TEST_F(DistributedOptimizerTest, ReducesNothingWhereNoGradientExists) {
  variable("a");
  DistributedOptimizer optimizer(make_optimizer("sgd"));
  optimizer.compute_gradients(s, constant(s, 1.0f));
  const Node* node = reduction(graph);
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->num_inputs(), 0);
  EXPECT_EQ(node->num_outputs(), 0);
}

TEST_F(DistributedOptimizerTest, KeepsSlicesOnOneRank) {
  const Variable table(s.named("table"), ones(s, DType::f32, {4, 2}));
  const Output rows = gather(s, table, constant(s, Tensor::of<std::int32_t>({1}, {2})));
  DistributedOptimizer optimizer(make_optimizer("sgd"));
  EXPECT_TRUE(indexed_slices(optimizer.compute_gradients(s, rows)[0].gradient));
  EXPECT_EQ(reduction(graph)->num_inputs(), 0);
}

TEST_F(DistributedOptimizerTest, ReducesSlicesAsWholeGradientsIfAskedTo) {
  const Variable table(s.named("table"), ones(s, DType::f32, {4, 2}));
  const Output rows = gather(s, table, constant(s, Tensor::of<std::int32_t>({1}, {2})));
  DistributedOptimizer optimizer(make_optimizer("sgd"), {.sparse_as_dense = true});
  EXPECT_FALSE(indexed_slices(optimizer.compute_gradients(s, rows)[0].gradient));
  EXPECT_EQ(reduction(graph)->num_inputs(), 1);
}

TEST_F(DistributedOptimizerTest, KeepsTheNamesOfTheWrappedOptimizersSlots) {
  const Variable a = variable("a");
  DistributedOptimizer optimizer(make_optimizer("momentum"));
  optimizer.minimize(s, square(s, a));
  EXPECT_EQ(optimizer.name(), "Momentum");
  EXPECT_EQ(optimizer.find_slot(a, "momentum").name(), "a/Momentum");
}

TEST_F(DistributedOptimizerTest, RefusesToWrapNothing) {
  EXPECT_THAT([] { DistributedOptimizer(nullptr); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("no optimizer to wrap")));
}

TEST_F(DistributedOptimizerTest, RefusesToCombineGradientsByTheirMaximum) {
  EXPECT_THAT([] { DistributedOptimizer(make_optimizer("sgd"), {.op = ReduceOp::max}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("op is max; gradients are combined by average, sum or adasum")));
}

void expect_refused(const DistributedOptimizerOptions& options, const std::string& text) {
  EXPECT_THAT([&] { DistributedOptimizer(make_optimizer("sgd"), options); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr(text)));
}

TEST_F(DistributedOptimizerTest, RefusesOptionsThatCannotBe) {
  expect_refused({.backward_passes_per_step = 0}, "backward_passes_per_step is 0");
  expect_refused({.op = ReduceOp::sum, .gradient_predivide_factor = 2}, "gradient_predivide_factor is 2");
  expect_refused({.gradient_predivide_factor = -1}, "gradient_predivide_factor is -1");
  expect_refused({.bucket_bytes = -1}, "first_bucket_bytes is 0 and bucket_bytes is -1");
  expect_refused({.num_groups = -1}, "num_groups is -1");
  const Variable a = variable("a");
  expect_refused({.num_groups = 1, .groups = {{a}}}, "both num_groups and groups");
  expect_refused({.groups = {{a}, {a}}}, "variable \"a\" stands in groups twice");
  expect_refused({.loss_scale = DynamicLossScale{.initial = 0}}, "the loss scale starts at 0");
  expect_refused({.loss_scale = DynamicLossScale{.factor = 1}}, "the factor must be above 1");
}

TEST_F(DistributedOptimizerTest, RefusesAGroupWithoutGradient) {
  const Variable a = variable("a"), unused = variable("unused");
  DistributedOptimizer optimizer(make_optimizer("sgd"), {.groups = {{unused}}});
  EXPECT_THAT([&] { optimizer.compute_gradients(s, square(s, a)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("\"unused\", which has no gradient")));
}

TEST_F(DistributedOptimizerTest, CutsGradientsIntoGroupsOfAboutAsManyEach) {
  Output loss = constant(s, 0.0f);
  for (const char* name : {"a", "b", "c", "d", "e"}) loss = add(s, loss, variable(name));
  DistributedOptimizer optimizer(make_optimizer("sgd"), {.num_groups = 2});
  optimizer.compute_gradients(s, loss);
  EXPECT_EQ(reduction(graph)->attr<std::vector<std::int64_t>>("groups"),
            (std::vector<std::int64_t>{0, 0, 0, 1, 1}));
}

// A checkpoint of either kind of training fits the other.
TEST(DistributedOptimizerCheckpoint, GoesBothWaysBetweenThePlainAndTheWrappedOptimizer) {
  TemporaryDirectory folder;
  const auto run = [&](bool wrapped, const std::string& from, const std::string& to, int steps) {
    Graph graph;
    Scope s(graph);
    const Variable w(s.named("w"), constant(s, 1.0f));
    std::unique_ptr<Optimizer> optimizer = make_optimizer("adam", {.learning_rate = 0.1});
    if (wrapped)
      optimizer = std::make_unique<DistributedOptimizer>(
          std::move(optimizer), DistributedOptimizerOptions{.backward_passes_per_step = 2,
                                                            .average_aggregated_gradients = true,
                                                            .loss_scale = DynamicLossScale{}});
    const Operation train = optimizer->minimize(s, square(s, w));
    const Operation initializer = global_variables_initializer(s);
    Session session(graph);
    Saver saver(graph);
    if (from.empty()) session.run(initializer);
    else saver.restore(session, from);
    for (int i = 0; i < steps * (wrapped ? 2 : 1); ++i) session.run(train);
    if (!to.empty()) saver.save(session, to);
    return session.run(w.read()).value<float>();
  };
  const float expected = run(false, "", "", 6);
  run(false, "", folder / "a", 2);
  run(true, folder / "a", folder / "b", 2);
  EXPECT_EQ(run(false, folder / "b", "", 2), expected);
}

// Halves the variable where the gradient is positive: no rule of kolo's own.
class HalvingOptimizer : public RuleOptimizer {
 public:
  HalvingOptimizer() : RuleOptimizer("Halving") {}

 protected:
  Operation apply(const Scope& s, Output gradient, const Variable& v) override {
    return assign_sub(s, v,
                      mul(s, maximum(s, sign(s, gradient), zeros_like(s, gradient)),
                          div(s, v, fill(s, v.dtype(), v.shape(), 2))));
  }
};

// Of any type that variables have.
class SubtractingOptimizer : public RuleOptimizer {
 public:
  SubtractingOptimizer() : RuleOptimizer("Subtracting") {}

 protected:
  Operation apply(const Scope& s, Output gradient, const Variable& v) override {
    return assign_sub(s, v, gradient);
  }
};

class LossScaleOfSixteenBits : public ::testing::TestWithParam<DType> {};

TEST_P(LossScaleOfSixteenBits, DividesInTheRangeOfTheScale) {
  Graph graph;
  Scope s(graph);
  const Variable v(s.named("v"), cast(s, constant(s, Tensor::of<float>({2}, {1, 2})), GetParam()));
  const Output x = placeholder(s, DType::f32, {2});
  const double scale = 131072;  // more than f16 holds
  DistributedOptimizer optimizer(std::make_unique<SubtractingOptimizer>(),
                                 {.loss_scale = DynamicLossScale{.initial = scale}});
  const Operation step = optimizer.minimize(s, mul(s, cast(s, v, DType::f32), x));
  Session session(graph);
  session.run(global_variables_initializer(s));
  const auto after = [&](float first, float second) {
    session.run(step, {{x, Tensor::of<float>({2}, {first, second})}});
    return elements<float>(session.run(cast(s, v, DType::f32)));
  };
  EXPECT_EQ(after(0.25f, -0.125f), (std::vector<float>{0.75f, 2.125f}));
  EXPECT_EQ(session.run(optimizer.loss_scale().read()).value<float>(), scale);
  EXPECT_EQ(after(3e38f, 0), (std::vector<float>{0.75f, 2.125f})) << "not finite when it is scaled";
  EXPECT_EQ(session.run(optimizer.loss_scale().read()).value<float>(), scale / 2);
}

INSTANTIATE_TEST_SUITE_P(DistributedOptimizer, LossScaleOfSixteenBits,
                         ::testing::Values(DType::f16, DType::bf16),
                         [](const auto& instance) { return std::string(name(instance.param)); });

// Values after five steps of minimising the sum of (a·b)² + b and of the squares of some rows of a table.
std::vector<float> trained(Optimizer& optimizer) {
  Graph graph;
  Scope s(graph);
  const Variable a(s.named("a"), constant(s, Tensor::of<float>({3}, {0.3f, -1.7f, 11})));
  const Variable b(s.named("b"), constant(s, Tensor::of<float>({3}, {1.1f, 0.9f, -0.01f})));
  const Variable table(s.named("table"), constant(s, Tensor::of<float>({3, 1}, {1, 2, 3})));
  const Output rows = gather(s, table, constant(s, Tensor::of<std::int32_t>({3, 1}, {2, 0, 2})));
  const Output loss = add(s, square(s, mul(s, a, b)), b);
  const Operation step = optimizer.minimize(s, add(s, loss, square(s, reshape(s, rows, {3}))));
  Session session(graph);
  session.run(global_variables_initializer(s));
  for (int i = 0; i < 5; ++i) session.run(step);
  std::vector<float> values = elements<float>(session.run(a.read()));
  for (const float value : elements<float>(session.run(b.read()))) values.push_back(value);
  for (const float value : elements<float>(session.run(table.read()))) values.push_back(value);
  return values;
}

class OneRank : public ::testing::TestWithParam<std::string> {};

TEST_P(OneRank, GivesTheBitsOfTheWrappedOptimizer) {
  const auto plain = make_optimizer(GetParam(), {.learning_rate = 0.03});
  DistributedOptimizer wrapped(make_optimizer(GetParam(), {.learning_rate = 0.03}));
  EXPECT_EQ(trained(*plain), trained(wrapped));
}

TEST_P(OneRank, GivesTheSameBitsWithWhatIsForSeveralRanks) {
  const auto plain = make_optimizer(GetParam(), {.learning_rate = 0.03});
  const auto expected = trained(*plain);
  for (const auto& compression :
       {fp16_compression(), bf16_compression(), powersgd_compression(1), topk_compression(0.1)}) {
    DistributedOptimizer wrapped(
        make_optimizer(GetParam(), {.learning_rate = 0.03}),
        {.compression = compression, .gradient_predivide_factor = 3, .num_groups = 2});
    EXPECT_EQ(trained(wrapped), expected) << compression->name();
  }
}

INSTANTIATE_TEST_SUITE_P(DistributedOptimizer, OneRank, ::testing::ValuesIn(registered_optimizers()),
                         [](const auto& instance) { return instance.param; });

TEST(DistributedOptimizer, WrapsAnOptimizerOfTheUsersOwn) {
  HalvingOptimizer plain;
  DistributedOptimizer wrapped(std::make_unique<HalvingOptimizer>());
  EXPECT_EQ(trained(plain), trained(wrapped));
}

}  // namespace
}  // namespace kolo
