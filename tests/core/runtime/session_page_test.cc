// What docs/sessions.md shows.
#include <gmock/gmock.h>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/queues.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

using ::testing::ElementsAre;

TEST(SessionPage, ShowsRunsAndCallables) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f32, {2});
  const Output y = relu(s.name_scope("fc1"), x);
  const Variable steps(s, constant(s, 0.0f));
  const Operation train_op = assign_add(s, steps, constant(s, 1.0f)).node;
  no_op(s.named("log"));
  const Output loss_output = mul(s, y, y);
  const Outputs gradient_outputs = {x, y};
  const Tensor input = Tensor::of<float>({2}, {-1, 2});
  const Feeds feeds = {{x, input}};
  RunMetadata metadata;

  Session session(graph);
  session.run(global_variables_initializer(s));
  const Tensor value = session.run(y, {{x, input}});
  const auto values = session.run({y, "fc1/Relu:0", train_op}, feeds);
  const auto [loss, grads] = session.run(std::tuple{loss_output, gradient_outputs}, feeds);
  session.run({loss_output}, feeds, Targets{train_op, "log"}, {.timeout_in_ms = 5000}, &metadata);

  EXPECT_THAT(value.span<float>(), ElementsAre(0, 2));
  EXPECT_THAT(values[1].span<float>(), ElementsAre(0, 2));
  EXPECT_FALSE(values[2]);
  EXPECT_THAT(loss.span<float>(), ElementsAre(0, 4));
  EXPECT_EQ(grads.size(), 2u);
  EXPECT_EQ(session.run(steps.read()).value<float>(), 2);

  const std::vector<Tensor> batch = {input};
  const Callable step =
      session.make_callable({.feeds = {x}, .fetches = {loss_output}, .targets = {train_op}});
  Tensor loss_value;
  step.run(batch, {&loss_value, 1});
  EXPECT_THAT(loss_value.span<float>(), ElementsAre(0, 4));
}

TEST(SessionPage, ShowsAQueue) {
  Graph graph;
  const Scope s(graph);
  const Output x = placeholder(s, DType::f32, {2});
  const FIFOQueue queue(s.named("jobs"), {DType::f32}, {.capacity = 8, .shapes = {{2}}});
  const Operation put = enqueue(s, queue, {x});
  const Output batch_of_three = dequeue_many(s, queue, 3)[0];

  Session session(graph);
  for (const float i : {0.0f, 1.0f, 2.0f}) session.run(put, {{x, Tensor::of<float>({2}, {i, -i})}});
  EXPECT_THAT(session.run(batch_of_three).span<float>(), ElementsAre(0, 0, 1, -1, 2, -2));
}

}  // namespace
}  // namespace kolo
