#include <kolo/optimizer/moving_average.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/rules.h>

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// v starts at 8 and is halved by each step: the gradient of v² / 2 is v.
struct Halving {
  explicit Halving(double decay)
      : v(s.named("v"), constant(s, Tensor::of<float>({1}, {8}))), averages(decay) {
    GradientDescentOptimizer optimizer(0.5);
    step = averages.apply(s, {v}, optimizer.minimize(s, l2_loss(s, v)));
    swap = averages.swap(s);
  }
  Graph graph;
  Scope s{graph};
  Variable v;
  ExponentialMovingAverage averages;
  Operation step, swap;
};

TEST(ExponentialMovingAverage, FollowsTheValuesBehindEachStep) {
  Halving net(0.6);
  Session session(net.graph);
  session.run(global_variables_initializer(net.s));
  double average = 8, value = 8;
  for (int n = 1; n <= 12; ++n) {
    session.run(net.step);
    value /= 2;
    const double decay = std::min(0.6, (1.0 + n) / (10.0 + n));
    average = decay * average + (1 - decay) * value;
    EXPECT_NEAR(session.run(net.averages.average(net.v).read()).data<float>()[0], average, 1e-6) << n;
  }
}

TEST(ExponentialMovingAverage, StartsAnewWhereTheVariableIs) {
  Halving net(0.9);
  const Operation start = net.averages.start(net.s);
  Session session(net.graph);
  session.run(global_variables_initializer(net.s));
  session.run(net.step);
  session.run(start);
  EXPECT_THAT(session.run(net.averages.average(net.v).read()).span<float>(), ElementsAre(4));
  EXPECT_THAT(session.run(net.v.read()).span<float>(), ElementsAre(4));
}

TEST(ExponentialMovingAverage, StartsAsItsVariableAndIsSavedUnderItsName) {
  Halving net(0.9);
  const Variable average = net.averages.average(net.v);
  EXPECT_EQ(average.name(), "v/ExponentialMovingAverage");
  const auto saved = global_variables(net.graph), trained = trainable_variables(net.graph);
  EXPECT_THAT(saved, testing::Contains(average));
  EXPECT_THAT(trained, testing::Not(testing::Contains(average)));
  Session session(net.graph);
  session.run(global_variables_initializer(net.s));
  EXPECT_THAT(session.run(average.read()).span<float>(), ElementsAre(8));
}

TEST(ExponentialMovingAverage, ChangesPlacesWithItsVariableAndBack) {
  Halving net(0.5);
  Session session(net.graph);
  session.run(global_variables_initializer(net.s));
  for (int n = 0; n < 3; ++n) session.run(net.step);
  const auto both = [&] {
    const auto values = session.run({net.v.read(), net.averages.average(net.v).read()});
    return std::vector<float>{values[0].data<float>()[0], values[1].data<float>()[0]};
  };
  const auto before = both();
  ASSERT_NE(before[0], before[1]);
  session.run(net.swap);
  EXPECT_THAT(both(), ElementsAre(before[1], before[0]));
  session.run(net.swap);
  EXPECT_EQ(both(), before);
}

TEST(ExponentialMovingAverage, RefusesWhatCannotBe) {
  EXPECT_THAT([] { ExponentialMovingAverage(1.0); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("decay 1")));
  EXPECT_THROW(ExponentialMovingAverage(-0.1), InvalidArgumentError);
  Halving net(0.5);
  EXPECT_THROW(net.averages.apply(net.s, {net.v}, net.step), InvalidArgumentError);
  const Variable other(net.s.named("other"), constant(net.s, 1.0F));
  EXPECT_THAT([&] { net.averages.average(other); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("average of other")));
}

}  // namespace
}  // namespace kolo
