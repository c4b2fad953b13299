#include <kolo/models/keras/weights.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session.h>
#include <kolo/models/keras/image_layers.h>
#include <tests/models/keras/values.h>

namespace kolo::keras {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;

// KERAS.md, row 4.
TEST(Initializer, ScalesByTheFans) {
  EXPECT_NEAR(Initializer("glorot_uniform").spread({64, 32}), 0.25, 1e-8);
  EXPECT_NEAR(Initializer("glorot_uniform").spread({3 * 25, 16 * 25}), 0.112390297, 1e-8);
  EXPECT_NEAR(Initializer("he_normal").spread({3 * 25, 16 * 25}), 0.185646376, 1e-8);
}

TEST(Initializer, FillsKernelsOfLayersWithinItsLimit) {
  Workspace ws;
  const KerasTensor images = Input(ws, {3, 9, 9});
  const Conv2D conv(16, 5);
  conv(images);
  const Tensor kernel = conv.get_weights().at(0);
  EXPECT_EQ(kernel.shape(), (Shape{16, 3, 5, 5}));
  EXPECT_THAT(elements(kernel), Each(AllOf(Ge(-0.1123903F), Le(0.1123903F))));
  EXPECT_GT(*std::max_element(kernel.span<float>().begin(), kernel.span<float>().end()), 0.1F);
}

TEST(Initializer, MakesOrthonormalRowsOrColumns) {
  Graph graph;
  Scope s(graph);
  graph.set_seed(1);
  Session session(graph);
  const Tensor q = session.run(Initializer("orthogonal").values(s, DType::f32, {2, 3}, {2, 3}));
  double product = 0, length = 0;
  for (int i = 0; i < 3; ++i) {
    product += q.data<float>()[i] * q.data<float>()[3 + i];
    length += q.data<float>()[i] * q.data<float>()[i];
  }
  EXPECT_NEAR(product, 0, 1e-6);
  EXPECT_NEAR(length, 1, 1e-5);
}

TEST(Initializer, NamesTheNearestOfUnknownNames) {
  EXPECT_THAT([] { Initializer("glorot_unifrom"); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("Unknown initializer: glorot_unifrom"), HasSubstr("glorot_uniform"))));
  EXPECT_THAT([] { Regularizer("l3"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Unknown regularizer: l3")));
  EXPECT_THAT([] { Constraint("maxnorm"); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("Unknown constraint: maxnorm")));
}

Tensor in_session(const std::function<Output(const Scope& s, Output w)>& f, const Tensor& w) {
  Graph graph;
  Scope s(graph);
  const Output y = f(s, constant(s, w));
  return Session(graph).run(y);
}

TEST(Regularizer, SumsMagnitudesAndSquares) {
  const Regularizer both = l1_l2(0.1, 0.01);
  const Tensor penalty =
      in_session([&](const Scope& s, Output w) { return both.penalty(s, w); }, floats({2}, {3, -4}));
  EXPECT_NEAR(penalty.value<float>(), 0.7 + 0.25, 1e-6);  // l2 is not halved
}

TEST(Constraint, BoundsNormsOfColumns) {
  const Tensor w = floats({2, 2}, {3, 0.3F, 4, 0.4F});
  const auto constrained = [&](const Constraint& c) {
    return elements(in_session([&](const Scope& s, Output v) { return c.constrained(s, v, {0}); }, w));
  };
  EXPECT_THAT(constrained(max_norm(2)), Pointwise(FloatNear(1e-6F), {1.2F, 0.3F, 1.6F, 0.4F}));
  EXPECT_THAT(constrained(unit_norm()), Pointwise(FloatNear(1e-6F), {0.6F, 0.6F, 0.8F, 0.8F}));
  EXPECT_THAT(elements(in_session([](const Scope& s, Output v) { return non_neg().constrained(s, v, {}); },
                                  floats({2}, {-1, 2}))),
              ElementsAre(0, 2));
}

}  // namespace
}  // namespace kolo::keras
