// How the dynamic loss scale moves from step to step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>

namespace kolo {
namespace {

using testing::ElementsAre;

constexpr float kGood = 1;
const float kBad = std::nanf("");

// The scale after each of some steps with these gradients.
std::vector<float> scales(const DynamicLossScale& options, const std::vector<float>& gradients) {
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), constant(s, 1.0f));
  const Output gradient = placeholder(s, DType::f32, {});
  DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(0.1), {.loss_scale = options});
  const Operation train = optimizer.minimize(s, mul(s, w, gradient));
  const Operation initializer = global_variables_initializer(s);
  Session session(graph);
  session.run(initializer);
  std::vector<float> found;
  for (const float value : gradients) {
    session.run(train, {{gradient, Tensor::scalar(value)}});
    found.push_back(session.run(optimizer.loss_scale().read()).value<float>());
  }
  return found;
}

TEST(LossScale, FallsNoFurtherThanItsMinimum) {
  EXPECT_THAT(scales({.initial = 8, .minimum = 2}, {kBad, kBad, kBad, kBad}), ElementsAre(4, 2, 2, 2));
}

// 4 good steps before the bad one and 5 after it: without a new count the first after it would be the fifth.
TEST(LossScale, CountsGoodStepsAnewAfterABadOne) {
  EXPECT_THAT(scales({.initial = 8, .growth_steps = 5}, {kGood, kGood, kGood, kGood, kBad,  //
                                                         kGood, kGood, kGood, kGood, kGood}),
              ElementsAre(8, 8, 8, 8, 4, 4, 4, 4, 4, 8));
}

}  // namespace
}  // namespace kolo
