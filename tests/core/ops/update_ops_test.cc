#include <kolo/core/ops/update_ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/elementwise.h>
#include <kolo/core/ops/variable.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

struct TwoAverages {
  Graph graph;
  Scope s{graph};
  Output x = placeholder(s, DType::f32, {});
  Output loss = square(s, x), other_loss = neg(s, x);
  Variable of_loss{s.named("a"), constant(s, 0.0f), {.trainable = false}};
  Variable of_other{s.named("b"), constant(s, 0.0f), {.trainable = false}};
  Variable stepped{s.named("stepped"), constant(s, 1.0f)};

  TwoAverages() {
    add_update_op(s, assign(s, of_loss, loss));
    add_update_op(s, assign(s, of_other, other_loss));
  }
};

TEST(UpdateOps, RunWithTheStepOfTheLossTheyBelongTo) {
  TwoAverages net;
  const Operation step = with_updates(net.s, assign_add(net.s, net.stepped, net.loss), net.loss);
  Session session(net.graph);
  session.run(global_variables_initializer(net.s));
  session.run(step, {{net.x, Tensor::scalar(3.0f)}});
  EXPECT_EQ(session.run(net.stepped.read()).value<float>(), 10);
  EXPECT_EQ(session.run(net.of_loss.read()).value<float>(), 9);
  EXPECT_EQ(session.run(net.of_other.read()).value<float>(), 0);
}

TEST(UpdateOps, DoNotRunWhenTheStepFails) {
  TwoAverages net;
  const Output unfed = placeholder(net.s, DType::f32, {});
  const Operation step = with_updates(net.s, assign_add(net.s, net.stepped, unfed), net.loss);
  Session session(net.graph);
  session.run(global_variables_initializer(net.s));
  EXPECT_ANY_THROW(session.run(step, {{net.x, Tensor::scalar(3.0f)}}));
  EXPECT_EQ(session.run(net.of_loss.read()).value<float>(), 0);
}

TEST(UpdateOps, LeaveAStepWithoutUpdatesAsItIs) {
  TwoAverages net;
  const Operation step = assign_add(net.s, net.stepped, net.x);
  EXPECT_EQ(with_updates(net.s, step, net.x), step);
}

}  // namespace
}  // namespace kolo
