#include <kolo/optimizer/sign_descent.h>

#include <gmock/gmock.h>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

TEST(SignDescent, MovesByTheRateWhateverTheGradient) {
  Graph graph;
  Scope s(graph);
  const Variable v(s, constant(s, Tensor::of<float>({3}, {3, -1, 0})));
  const Operation step = SignDescentOptimizer(0.5f).minimize(s, square(s, v));
  Session session(graph);
  session.run(global_variables_initializer(s));
  session.run(step);
  EXPECT_THAT(session.run(v.read()).span<float>(), testing::ElementsAre(2.5f, -0.5f, 0.0f));
}

}  // namespace
}  // namespace kolo
