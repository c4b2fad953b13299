#include <kolo/core/ops/variable.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/op_checks.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

template <typename T>
class VariableOf : public testing::Test {};
using Types =
    testing::Types<float, double, std::int32_t, std::int64_t, std::uint8_t, std::int8_t, Half, BFloat16>;
TYPED_TEST_SUITE(VariableOf, Types);

TYPED_TEST(VariableOf, IsAssignedAddedToAndSubtractedFrom) {
  using T = TypeParam;
  Graph graph;
  Scope s(graph);
  const Variable v(s, constant(s, Tensor::of<T>({2}, {T(10), T(20)})));
  const Output by = constant(s, Tensor::of<T>({2}, {T(1), T(2)}));
  const Output plus = assign_add(s, v, by), minus = assign_sub(s, v, by), set = assign(s, v, by);
  Session session(graph);
  session.run(v.initializer());
  EXPECT_THAT(session.run(plus).template span<T>(), ElementsAre(T(11), T(22)));
  EXPECT_THAT(session.run(plus).template span<T>(), ElementsAre(T(12), T(24)));
  EXPECT_THAT(session.run(minus).template span<T>(), ElementsAre(T(11), T(22)));
  EXPECT_THAT(session.run(set).template span<T>(), ElementsAre(T(1), T(2)));
  EXPECT_THAT(session.run(v.read()).template span<T>(), ElementsAre(T(1), T(2)));
  for (const Output& update : {plus, minus, set}) record_op_check(update.node->op(), OpCheck::value);
}

TEST(Variables, KeepTheirShapeWhenTheyAreUpdated) {
  Graph graph;
  Scope s(graph);
  const Variable v(s, zeros(s, DType::f32, {2, 3}));
  const Output value = placeholder(s, DType::f32, {-1, 3});
  for (const Output& output :
       {v.ref(), assign(s, v, value), assign_add(s, v, value), assign_sub(s, v, value)}) {
    EXPECT_EQ(output.shape(), (Shape{2, 3})) << output.name();
    record_op_check(output.node->op(), OpCheck::shape);
  }
}

TEST(Variables, HoldTruthValues) {
  Graph graph;
  Scope s(graph);
  const Variable v(s, constant(s, Tensor::scalar(true)));
  Session session(graph);
  session.run(v.initializer());
  EXPECT_TRUE(session.run(v.read()).value<bool>());
}

TEST(Variables, AreNotReadBeforeTheyAreInitialised) {
  Graph graph;
  Scope s(graph);
  const Variable v(s.named("v"), constant(s, 1.0f));
  EXPECT_THAT([&] { Session(graph).run(v.read()); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("Attempting to use uninitialized value v")));
}

TEST(Variables, RefuseValueOfAnotherShape) {
  Graph graph;
  Scope s(graph);
  const Variable v(s, zeros(s, DType::f32, {2}));
  EXPECT_THAT([&] { assign(s, v, zeros(s, DType::f32, {3})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr(
                  "Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= [3]")));
  const Output fed = placeholder(s, DType::f32);
  const Output update = assign_add(s, v, fed);
  Session session(graph);
  session.run(v.initializer());
  EXPECT_THAT(
      [&] {
        session.run(update, {{fed, Tensor::zeros(DType::f32, {3})}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("lhs shape= [2] rhs shape= [3]")));
}

struct GlobalStep : testing::Test {
  Graph graph;
  Scope s{graph};
};

TEST_F(GlobalStep, IsAWholeNumberThatIsSavedButNotTrained) {
  const Variable step = create_global_step(s);
  EXPECT_EQ(step.name(), "global_step");
  EXPECT_EQ(step.dtype(), DType::i64);
  EXPECT_EQ(step.shape(), Shape());
  EXPECT_THAT(global_variables(graph), ElementsAre(step));
  EXPECT_TRUE(trainable_variables(graph).empty());
  EXPECT_THAT(graph.collection(kGlobalStep), ElementsAre(step.ref().node));
}

TEST_F(GlobalStep, IsMadeOnce) {
  const Variable step = get_or_create_global_step(s);
  EXPECT_EQ(get_or_create_global_step(s), step);
  EXPECT_THAT([&] { create_global_step(s); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("\"global_step\" already exists.")));
}

TEST_F(GlobalStep, IsRefusedWhereItsNameIsTakenByAnotherType) {
  const Variable other(s.named("global_step"), constant(s, 1.0f));
  for (const auto& make : {create_global_step, get_or_create_global_step})
    EXPECT_THAT([&] { make(s); }, ThrowsMessage<InvalidArgumentError>(
                                      HasSubstr("Existing \"global_step\" does not have integer type")));
}

}  // namespace
}  // namespace kolo
