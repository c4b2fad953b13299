#include <kolo/models/zoo.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/losses.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/layers.h>
#include <kolo/optimizer/rules.h>

namespace kolo::models {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::map<std::string, Shape> variables_for(const Shape& images) {
  Graph graph;
  Scope s(graph);
  cifar10_net(s, placeholder(s, DType::f32, images));
  std::map<std::string, Shape> shapes;
  for (const Variable& variable : trainable_variables(graph)) shapes[variable.name()] = variable.shape();
  return shapes;
}

std::int64_t parameters(const std::map<std::string, Shape>& variables) {
  std::int64_t count = 0;
  for (const auto& [name, shape] : variables) count += shape.elements();
  return count;
}

// The tutorial's layers, in its own shapes: 5·5·3·64 + 64, 5·5·64·64 + 64, 2304·384 + 384, 384·192 + 192,
// 192·10 + 10.
TEST(Cifar10Net, HasTheParametersOfTheTutorial) {
  const auto variables = variables_for({-1, 3, 24, 24});
  EXPECT_EQ(parameters(variables), 1068298);
  EXPECT_EQ(variables.at("local3/w"), (Shape{2304, 384}));
  EXPECT_EQ(parameters(variables_for({-1, 3, 32, 32})), 1756426);
}

TEST(Cifar10Net, DecaysTheWeightsOfItsTwoDenseLayers) {
  Graph graph;
  graph.set_seed(1);
  Scope s(graph);
  const Output logits = cifar10_net(s, placeholder(s, DType::f32, {2, 3, 8, 8}));
  const Output none = constant(s, 0.0F), loss = with_penalties(s, none);
  std::map<std::string, Variable> variables;
  for (const Variable& variable : trainable_variables(graph)) variables[variable.name()] = variable;
  Session session(graph);
  session.run(global_variables_initializer(s));
  double squares = 0;
  for (const char* name : {"local3/w", "local4/w"}) {
    const Tensor w = session.run(variables.at(name).read());
    for (const float value : w.span<float>()) squares += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(session.run(loss).value<float>(), 0.004 * squares / 2, 1e-5 * squares);
  EXPECT_EQ(logits.shape(), (Shape{2, 10}));
}

TEST(Cifar10Net, LearnsABatchByHeart) {
  Graph graph;
  graph.set_seed(1);
  Scope s(graph);
  constexpr std::int64_t kBatch = 4;
  Tensor pixels(DType::f32, {kBatch, 3, 16, 16});
  for (std::int64_t i = 0; i < pixels.elements(); ++i)
    pixels.data<float>()[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i * i % 8191)));
  const Output entropy = softmax_cross_entropy(s, cifar10_net(s, constant(s, pixels)),
                                               constant(s, Tensor::of<std::int32_t>({kBatch}, {1, 3, 5, 9})));
  GradientDescentOptimizer optimizer(0.1);
  const Operation train = optimizer.minimize(s, with_penalties(s, entropy));
  Session session(graph);
  session.run(global_variables_initializer(s));
  const float before = session.run(entropy).value<float>();
  for (int i = 0; i < 60; ++i) session.run(train);
  EXPECT_NEAR(before, std::log(10.0F), 0.5F);
  EXPECT_LT(session.run(entropy).value<float>(), 0.3F * before);
}

TEST(Cifar10Net, RefusesWhatAreNoImages) {
  EXPECT_THAT([] { variables_for({-1, 784}); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("[?,784]")));
  EXPECT_THAT(
      [] {
        variables_for({-1, 3, -1, 32});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("all but N known")));
}

}  // namespace
}  // namespace kolo::models
