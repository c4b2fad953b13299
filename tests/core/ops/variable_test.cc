#include <kolo/core/ops/variable.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/runtime/session.h>

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
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

TEST(Placeholder, AsksForItsValueWhenItIsNotFed) {
  Graph graph;
  Scope s(graph);
  const auto running = [&](Output tensor) { return [&graph, tensor] { Session(graph).run(tensor); }; };
  EXPECT_THAT(running(identity(s, placeholder(s.named("p"), DType::f32, {-1, 3}))),
              ThrowsMessage<InvalidArgumentError>(HasSubstr(
                  "You must feed a value for placeholder tensor 'p' with dtype float and shape [?,3]")));
  EXPECT_THAT(running(identity(s, placeholder(s.named("q"), DType::i64, {}))),
              ThrowsMessage<InvalidArgumentError>(testing::AllOf(
                  HasSubstr("You must feed a value for placeholder tensor 'q' with dtype int64"),
                  Not(HasSubstr("and shape")))));
}

TEST(Values, AreFilledInEveryType) {
  Graph graph;
  Scope s(graph);
  Session session(graph);
  EXPECT_THAT(session.run(ones(s, DType::bf16, {2})).span<BFloat16>(), ElementsAre(BFloat16(1), BFloat16(1)));
  EXPECT_THAT(session.run(fill(s, DType::i8, {2}, -3)).span<std::int8_t>(), ElementsAre(-3, -3));
  EXPECT_EQ(session.run(zeros(s, DType::boolean, {})).value<bool>(), false);
  const Output x = constant(s, Tensor::of<double>({2}, {3, 4}));
  EXPECT_THAT(session.run(zeros_like(s, x)).span<double>(), ElementsAre(0, 0));
  EXPECT_THAT(session.run(ones_like(s, x)).span<double>(), ElementsAre(1, 1));
  EXPECT_THAT(session.run(stop_gradient(s, identity(s, x))).span<double>(), ElementsAre(3, 4));
}

}  // namespace
}  // namespace kolo
