#include <gmock/gmock.h>

#include <cmath>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>

#include "tests/core/passes/placed_step.h"
#include "tests/core/same_bits.h"

namespace kolo {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFused[] = "FusedElementwise";

struct FuseElementwise : ::testing::Test {
  static StepGraph fused(const std::vector<Fetch>& fetches) { return after("fuse_elementwise", fetches); }

  // The value with and without the pass.
  std::pair<Tensor, Tensor> values(Output y, const Feeds& feeds) {
    Session with(graph, {.graph_options = only("fuse_elementwise")});
    Session without(graph, {.graph_options = {.optimizer_level = OptimizerLevel::l0}});
    return {with.run(y, feeds), without.run(y, feeds)};
  }
  void expect_same_bits(Output y, const Feeds& feeds) {
    EXPECT_THAT(ops_of(fused({y})), Contains(kFused));
    const auto [with, without] = values(y, feeds);
    kolo::expect_same_bits({with}, {without});
  }
  // No two elements alike, of both signs.
  static Tensor ramp(const Shape& shape) {
    Tensor tensor(DType::f32, shape);
    float value = -0.5f * static_cast<float>(shape.elements());
    for (float& element : tensor.span<float>()) element = (value += 1.01f) / 37;
    return tensor;
  }

  Graph graph;
  Scope s{graph};
  const Output x = placeholder(s.named("x"), DType::f32, {2, 3}),
               z = placeholder(s.named("z"), DType::f32, {2, 3});
};

TEST_F(FuseElementwise, MakesOneNodeOfATreeNamedAfterAll) {
  const Output a = neg(s.named("a"), x), b = square(s.named("b"), z);
  const StepGraph step = fused({mul(s.named("y"), a, b)});
  EXPECT_THAT(ops_of(step), ElementsAre("Placeholder", "Placeholder", kFused));
  EXPECT_EQ(step.nodes[step.fetches[0].node].name, "a + b + y");
}

TEST_F(FuseElementwise, GivesTheBitsOfTheSeparateNodes) {
  const Output y = tanh(s, add(s, mul(s, x, z), div(s, exp(s, neg(s, x)), maximum(s, x, z))));
  expect_same_bits(y,
                   {{x, ramp({2, 3})}, {z, Tensor::of<float>({2, 3}, {1, -0.0f, 3, NAN, INFINITY, 1e-40f})}});
}

TEST_F(FuseElementwise, GoesThroughMorePiecesThanOne) {
  const Output big = placeholder(s, DType::f32, {3, 5000});
  expect_same_bits(square(s, neg(s, big)), {{big, ramp({3, 5000})}});
}

TEST_F(FuseElementwise, RepeatsRowsColumnsPlanesAndScalars) {
  const Shape shape{3, 5, 700};
  const Output big = placeholder(s, DType::f32, shape);
  for (const Shape& small : {Shape(), Shape({1}), Shape({700}), Shape({5, 700}), Shape({5, 1}),
                             Shape({3, 1, 1}), Shape({1, 5, 1}), Shape({3, 5, 1})}) {
    const Output other = placeholder(s, DType::f32, small);
    expect_same_bits(neg(s, sub(s, other, big)), {{big, ramp(shape)}, {other, ramp(small)}});
  }
}

TEST_F(FuseElementwise, LeavesBroadcastsOfDimensionsThatAreNoNeighbours) {
  const Output big = placeholder(s, DType::f32, {2, 3, 4}), other = placeholder(s, DType::f32, {2, 1, 4});
  const StepGraph step = fused({add(s, other, neg(s, neg(s, big)))});
  EXPECT_THAT(ops_of(step), ElementsAre("Placeholder", "Placeholder", kFused, "Add"));
}

TEST_F(FuseElementwise, CombinesTwoRepeatedInputs) {
  const Output row = placeholder(s, DType::f32, {1, 4}), column = placeholder(s, DType::f32, {3, 1});
  expect_same_bits(neg(s, mul(s, row, column)), {{row, ramp({1, 4})}, {column, ramp({3, 1})}});
  const Output a = placeholder(s, DType::f32, {1, 1}), b = placeholder(s, DType::f32, {2, 1});
  const Output wide = placeholder(s, DType::f32, {2, 40});
  expect_same_bits(mul(s, add(s, wide, a), add(s, wide, b)),
                   {{a, ramp({1, 1})}, {b, ramp({2, 1})}, {wide, ramp({2, 40})}});
}

TEST_F(FuseElementwise, TakesBiasAndRectifierOfAProductAndOfImages) {
  const Output bias = placeholder(s, DType::f32, {3}), images = placeholder(s, DType::f32, {2, 3, 20, 30});
  expect_same_bits(relu(s, bias_add(s, x, bias)), {{x, ramp({2, 3})}, {bias, ramp({3})}});
  expect_same_bits(relu(s, bias_add(s, images, bias)), {{images, ramp({2, 3, 20, 30})}, {bias, ramp({3})}});
}

TEST_F(FuseElementwise, SumsInTheOrderOfAddN) {
  expect_same_bits(relu(s, add_n(s, {x, z, neg(s, x), z})), {{x, ramp({2, 3})}, {z, ramp({2, 3})}});
}

TEST_F(FuseElementwise, TakesWholeNumbersButNoDivisionOfThem) {
  const Output i = placeholder(s, DType::i64, {2});
  const Tensor numbers = Tensor::of<std::int64_t>({2}, {3, -4});
  expect_same_bits(mul(s, neg(s, i), square(s, i)), {{i, numbers}});
  EXPECT_THAT(ops_of(fused({neg(s, div(s, i, i))})), Not(Contains(kFused)));
}

TEST_F(FuseElementwise, KeepsAValueThatSomethingElseReads) {
  const Output a = exp(s.named("a"), x);
  EXPECT_THAT(ops_of(fused({neg(s, a), matmul(s, a, a, {.transpose_b = true})})), Not(Contains(kFused)));
}

TEST_F(FuseElementwise, KeepsAValueThatIsFetched) {
  const Output a = exp(s, x);
  EXPECT_THAT(ops_of(fused({a, neg(s, a)})), Not(Contains(kFused)));
}

TEST_F(FuseElementwise, KeepsANodeThatSomethingWaitsFor) {
  const Output a = exp(s.named("a"), x);
  const Operation waits = no_op(s.control_dependencies({a}));
  EXPECT_THAT(ops_of(fused({neg(s, a), waits})), Not(Contains(kFused)));
}

TEST_F(FuseElementwise, WaitsForWhatItsPartsWaitFor) {
  const Operation first = no_op(s.named("first")), second = no_op(s.named("second"));
  const Output a = exp(s.control_dependencies({first}).named("a"), x);
  const StepGraph step = fused({neg(s.control_dependencies({second}).named("y"), a)});
  EXPECT_THAT(control_inputs_of(step, "a + y"), ElementsAre("first", "second"));
}

TEST_F(FuseElementwise, DoesNotMoveAReadBehindAnUpdate) {
  const Variable v(s.named("v"), zeros(s, DType::f32, {}));
  const Output before = exp(s, v.ref());
  const Operation update = assign_add(s, v, constant(s, 1.0f));
  const Output y = neg(s, before);
  EXPECT_THAT(ops_of(fused({update, y})), Not(Contains(kFused)));
  Session session(graph);
  session.run(v.initializer());
  EXPECT_EQ(session.run({update, y})[1].value<float>(), -1);
}

TEST_F(FuseElementwise, LeavesOtherDevicesAndWhatLiesOnTwo) {
  for (const char* type : {"GPU", "CPU"}) {
    StepGraph step = placed_step({square(s, neg(s, x))});
    for (StepNode& node : step.nodes)
      if (node.schema->name() == "Neg" || *type == 'G') node.device = local_device_name(type, 1);
    rewrite(step, only("fuse_elementwise"));
    EXPECT_THAT(ops_of(step), ElementsAre("Placeholder", "Neg", "Square"));
  }
}

TEST_F(FuseElementwise, TakesNoMoreThanAProgramHolds) {
  Output y = x;
  for (int i = 0; i < 30; ++i) y = neg(s, y);
  EXPECT_THAT(ops_of(fused({y})), ElementsAre("Placeholder", kFused, kFused, kFused));
}

TEST_F(FuseElementwise, NamesItsPartsInTheTrace) {
  const Output y = square(s.named("b"), neg(s.named("a"), x));
  Session session(graph, {.graph_options = only("fuse_elementwise")});
  RunMetadata metadata;
  session.run(std::vector<Fetch>{y}, {{x, ramp({2, 3})}}, {.trace_level = TraceLevel::full_trace}, &metadata);
  const StepTrace& trace = metadata.step_stats;
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].name, "a + b");
}

TEST_F(FuseElementwise, NamesItsPartsInErrors) {
  const Variable v(s.named("v"), zeros(s, DType::f32, {}));
  const Output y = square(s.named("b"), neg(s.named("a"), v.ref()));
  Session session(graph, {.graph_options = only("fuse_elementwise")});
  EXPECT_THAT([&] { session.run(y); },
              ::testing::ThrowsMessage<FailedPreconditionError>(::testing::AllOf(
                  HasSubstr("Attempting to use uninitialized value v"), HasSubstr("[node \"a + b\""))));
}

}  // namespace
}  // namespace kolo
