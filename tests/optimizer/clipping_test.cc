#include <kolo/optimizer/clipping.h>

#include <gmock/gmock.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/indexed_slices.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>
#include <kolo/optimizer/schedules.h>

#include "tests/optimizer/small_training.h"

namespace kolo {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::IsNan;
using testing::ThrowsMessage;

struct Clipping : testing::Test {
  Output tensor(const Shape& shape, std::initializer_list<float> values) {
    return constant(s, Tensor::of<float>(shape, values));
  }
  std::vector<float> value(const Output& of) {
    const Tensor tensor = Session(graph).run(of);
    return {tensor.span<float>().begin(), tensor.span<float>().end()};
  }
  // Rows 2 and 0 of three.
  Output slices(std::initializer_list<float> values) {
    return to_dense(s, {.values = tensor({2, static_cast<std::int64_t>(values.size()) / 2}, values),
                        .indices = constant(s, Tensor::of<std::int32_t>({2}, {2, 0})),
                        .dense_shape = {3, static_cast<std::int64_t>(values.size()) / 2}});
  }

  Graph graph;
  Scope s{graph};
};

// Row 56 of the worked examples.
TEST_F(Clipping, ByGlobalNormShortensAllByOneFactor) {
  const auto clipped =
      clip_by_global_norm(s, {tensor({2, 3}, {-2, 0, 0, 4, 0, 0}), tensor({2}, {1, -2})}, 4.0);
  EXPECT_EQ(value(clipped.norm), std::vector<float>{5});
  const auto near = [](float x) { return FloatNear(x, 1e-5f * std::abs(x)); };
  EXPECT_THAT(value(clipped.gradients[0]), ElementsAre(near(-1.6f), 0, 0, near(3.2f), 0, 0));
  EXPECT_THAT(value(clipped.gradients[1]), ElementsAre(near(0.8f), near(-1.6f)));
}

TEST_F(Clipping, ByGlobalNormLeavesWhatIsShortEnough) {
  const auto clipped = clip_by_global_norm(s, {tensor({2}, {3, 4})}, 8.0);
  EXPECT_THAT(value(clipped.gradients[0]), ElementsAre(3, 4));
}

TEST_F(Clipping, ByGlobalNormLeavesZerosZero) {
  EXPECT_THAT(value(clip_by_global_norm(s, {tensor({2}, {0, 0})}, 8.0).gradients[0]), ElementsAre(0, 0));
}

TEST_F(Clipping, ByGlobalNormPassesOverAbsentGradients) {
  const auto clipped = clip_by_global_norm(s, {Output(), tensor({2}, {3, 4}), Output()}, 1.0);
  ASSERT_EQ(clipped.gradients.size(), 3u);
  EXPECT_FALSE(clipped.gradients[0]);
  EXPECT_FALSE(clipped.gradients[2]);
  EXPECT_EQ(value(clipped.norm), std::vector<float>{5});
  EXPECT_EQ(value(clip_by_global_norm(s, {Output()}, 1.0).norm), std::vector<float>{0});
}

TEST_F(Clipping, ByGlobalNormMakesAllNaNWhereOneIsInfiniteOrNaN) {
  for (const float bad : {HUGE_VALF, std::nanf("")}) {
    const auto clipped = clip_by_global_norm(s, {tensor({2}, {1, bad}), tensor({1}, {2})}, 4.0);
    EXPECT_THAT(value(clipped.gradients[0]), Each(IsNan()));
    EXPECT_THAT(value(clipped.gradients[1]), Each(IsNan()));
  }
}

TEST_F(Clipping, ByGlobalNormTakesTheNormThatIsGiven) {
  const auto clipped = clip_by_global_norm(s, {tensor({1}, {3})}, 4.0, constant(s, 8.0f));
  EXPECT_THAT(value(clipped.gradients[0]), ElementsAre(1.5f));
}

TEST_F(Clipping, ByGlobalNormCountsTheValuesOfSlices) {
  const auto clipped = clip_by_global_norm(s, {slices({3, 4})}, 2.5);
  EXPECT_EQ(value(clipped.norm), std::vector<float>{5});
  const auto found = indexed_slices(clipped.gradients[0]);
  ASSERT_TRUE(found);
  EXPECT_THAT(value(found->values), ElementsAre(1.5f, 2));
  EXPECT_THAT(value(clipped.gradients[0]), ElementsAre(2, 0, 1.5f));
}

TEST_F(Clipping, ByGlobalNormKeepsGradientsWithTheirVariables) {
  const Variable a(s.named("a"), constant(s, 1.0f)), b(s.named("b"), constant(s, 1.0f));
  const std::vector<GradientPair> pairs = {{constant(s, 8.0f), a}, {Output(), b}};
  const auto clipped = clip_by_global_norm(s, pairs, 2.0);
  EXPECT_EQ(clipped[0].variable, a);
  EXPECT_EQ(value(clipped[0].gradient), std::vector<float>{2});
  EXPECT_EQ(clipped[1].variable, b);
  EXPECT_FALSE(clipped[1].gradient);
}

TEST_F(Clipping, ByNormShortensWhatIsTooLong) {
  EXPECT_THAT(value(clip_by_norm(s, tensor({2}, {3, -4}), 2.5)), ElementsAre(1.5f, -2));
  EXPECT_THAT(value(clip_by_norm(s, tensor({2}, {3, -4}), 8.0)), ElementsAre(3, -4));
  EXPECT_TRUE(indexed_slices(clip_by_norm(s, slices({3, 4}), 2.5)));
}

TEST_F(Clipping, ByValueKeepsElementsBetweenTheLimits) {
  EXPECT_THAT(value(clip_by_value(s, tensor({4}, {-3, 0.5f, 7, std::nanf("")}), -1.0, 2.0)),
              ElementsAre(-1, 0.5f, 2, IsNan()));
  const auto found = indexed_slices(clip_by_value(s, slices({-9, 9}), -1.0, 2.0));
  ASSERT_TRUE(found);
  EXPECT_THAT(value(found->values), ElementsAre(-1, 2));
}

// The example of docs/optimizers.md.
TEST_F(Clipping, StandsBetweenComputingAndApplyingGradients) {
  const Variable v(s.named("v"), tensor({2}, {30, 40}));
  const Output loss = square(s, v);
  const Variable step = get_or_create_global_step(s);
  DistributedOptimizer optimizer(
      std::make_unique<MomentumOptimizer>(cosine_decay(s, 0.1, step, {.decay_steps = 1000}), 0.9));
  const auto gradients = optimizer.compute_gradients(s, loss);
  const Operation train_op =
      optimizer.apply_gradients(s, clip_by_global_norm(s, gradients, 5.0), {.global_step = step});
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(train_op);
  EXPECT_THAT(elements<float>(session.run(v.read())),
              ElementsAre(FloatNear(29.7f, 1e-5f), FloatNear(39.6f, 1e-5f)));
  EXPECT_EQ(session.run(step.read()).value<std::int64_t>(), 1);
}

TEST_F(Clipping, RefusesLimitsOutOfTheirRange) {
  const Output x = tensor({1}, {1});
  EXPECT_THAT([&] { clip_by_norm(s, x, 0.0); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("clip_norm is 0")));
  EXPECT_THAT([&] { clip_by_global_norm(s, {x}, -1.0); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("clip_norm is -1")));
  EXPECT_THAT([&] { clip_by_value(s, x, 2.0, 1.0); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("low is 2 and high is 1")));
}

}  // namespace
}  // namespace kolo
