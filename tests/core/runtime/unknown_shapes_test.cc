// Ops behind values whose shapes only a step tells.
#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/linalg.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Two rows of 1, 2, 3 where the condition holds, else one.
class UnknownShapes : public ::testing::Test {
 protected:
  static Outputs rows(const Scope& b, std::int64_t count) {
    Tensor tensor(DType::f32, {count, 3});
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      tensor.data<float>()[i] = static_cast<float>(i % 3 + 1);
    return {constant(b, tensor)};
  }
  Tensor run(const Output& fetch, bool two) { return session_.run(fetch, {{two_, Tensor::scalar(two)}}); }

  Graph graph_;
  Scope s_{graph_};
  Output two_ = placeholder(s_, DType::boolean, Shape{});
  Output x_ = cond(
      s_, two_, [](const Scope& b) { return rows(b, 2); }, [](const Scope& b) { return rows(b, 1); })[0];
  Session session_{graph_};
};

TEST_F(UnknownShapes, AreFoundWhenTheyChangeFromRunToRun) {
  const Output sum = add(s_, neg(s_, x_), mul(s_, x_, x_));
  for (const bool two : {true, false, false, true}) {
    const Tensor value = run(sum, two);
    EXPECT_EQ(value.shape(), two ? Shape({2, 3}) : Shape({1, 3}));
    EXPECT_EQ(value.span<float>()[2], 6);
  }
}

TEST_F(UnknownShapes, LetOtherDimensionsBroadcast) {
  const Output y = add(s_, x_, constant(s_, Tensor::of<float>({3}, {10, 20, 30})));
  EXPECT_THAT(run(y, false).span<float>(), ElementsAre(11, 22, 33));
  EXPECT_EQ(run(y, true).shape(), Shape({2, 3}));
}

TEST_F(UnknownShapes, AreReducedAndMultiplied) {
  EXPECT_EQ(run(reduce_sum(s_, x_), true).value<float>(), 12);
  const Output product = matmul(s_, x_, ones(s_, DType::f32, {3, 2}));
  EXPECT_THAT(run(product, false).span<float>(), ElementsAre(6, 6));
  EXPECT_EQ(run(product, true).shape(), Shape({2, 2}));
}

TEST_F(UnknownShapes, AreSeenThroughViews) {
  EXPECT_EQ(run(identity(s_, x_), true).shape(), Shape({2, 3}));
  const Output flat = reshape(s_, x_, {-1});
  EXPECT_THAT(run(flat, false).span<float>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(run(neg(s_, flat), true).shape(), Shape({6}));
  const Output known = reshape(s_, x_, {2, 3});
  EXPECT_THAT(run(neg(s_, known), true).span<float>(), ElementsAre(-1, -2, -3, -1, -2, -3));
  EXPECT_THAT([&] { run(known, false); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("3 elements")));
}

TEST_F(UnknownShapes, AreGivenToValuesOfKnownShapes) {
  const Tensor six = Tensor::of<float>({6}, {1, 2, 3, 4, 5, 6});
  const Output fed = placeholder(s_, DType::f32, {6}), fixed = constant(s_, six);
  const Variable variable(s_.named("v"), fixed);
  session_.run(variable.initializer());
  for (const Output& known : {fixed, fed, variable.read(), neg(s_, neg(s_, fed))})
    for (const Output& shaped :
         {reshape_like(s_, known, x_), neg(s_, reshape_like(s_, neg(s_, known), x_))}) {
      const Tensor value = session_.run(shaped, {{two_, Tensor::scalar(true)}, {fed, six}});
      EXPECT_EQ(value.shape(), (Shape{2, 3}));
      EXPECT_THAT(value.span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
    }
}

TEST_F(UnknownShapes, ThatDoNotFitAreAnErrorThatNamesTheNode) {
  const Output y = add(s_.named("both"), x_, ones(s_, DType::f32, {2, 3}));
  const Output z = matmul(s_.named("product"), ones(s_, DType::f32, {4, 2}), x_);
  EXPECT_EQ(run(z, true).shape(), Shape({4, 3}));
  EXPECT_THAT([&] { run(z, false); }, ThrowsMessage<InvalidArgumentError>(HasSubstr("product")));
  EXPECT_EQ(run(y, false).shape(), Shape({2, 3}));
}

TEST(WhileLoop, EndsWithItsTimeOrItsSession) {
  Graph graph;
  const Scope s(graph);
  const Outputs endless = while_loop(
      s, [](const Scope& c, const Outputs&) { return constant(c, Tensor::scalar(true)); },
      [](const Scope& b, const Outputs& v) { return Outputs{add(b, v[0], constant(b, 1.0f))}; },
      {constant(s, 0.0f)});
  Session session(graph);
  EXPECT_THAT([&] { session.run({Fetch(endless[0])}, {}, {.timeout_in_ms = 50}); },
              ThrowsMessage<DeadlineExceededError>(HasSubstr("Timed out waiting for notification")));
}

}  // namespace
}  // namespace kolo
