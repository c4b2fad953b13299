#include <kolo/core/ops/basic.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/session.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

using Unary = Output (*)(const Scope&, Output);

Output copy(const Scope& s, Output x) { return s.add("Copy", {x}); }

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
  const auto filled = [](DType dtype, double value) {
    return run_op({}, [=](Scope& s, const Outputs&) { return fill(s, dtype, {2}, value); });
  };
  EXPECT_THAT(filled(DType::bf16, 1).span<BFloat16>(), ElementsAre(BFloat16(1), BFloat16(1)));
  EXPECT_THAT(filled(DType::i8, -3).span<std::int8_t>(), ElementsAre(-3, -3));
  EXPECT_THAT(filled(DType::boolean, 0).span<bool>(), ElementsAre(false, false));
}

TEST(Values, AreMadeOrPassedOnLikeTheirInput) {
  const Tensor x = Tensor::of<double>({2}, {3, 4});
  const auto run = [&](Unary op) {
    return run_op({x}, [=](Scope& s, const Outputs& in) { return op(s, in[0]); });
  };
  EXPECT_THAT(run(zeros_like).span<double>(), ElementsAre(0, 0));
  EXPECT_THAT(run(ones_like).span<double>(), ElementsAre(1, 1));
  for (const Unary op : {identity, stop_gradient, copy})
    EXPECT_THAT(run(op).span<double>(), ElementsAre(3, 4));
}

TEST(Values, HaveTheShapesThatWereAskedFor) {
  expect_shape({},
               [](Scope& s, const Outputs&) {
                 return constant(s, Tensor::of<float>({1, 2}, {1, 2}));
               },
               {1, 2});
  expect_shape({}, [](Scope& s, const Outputs&) { return placeholder(s, DType::f32, {-1, 2}); }, {-1, 2});
  expect_shape({}, [](Scope& s, const Outputs&) { return ones(s, DType::f32, {3}); }, {3});
  for (const Unary op : {zeros_like, ones_like, identity, stop_gradient, copy})
    expect_shape({{-1, 3}}, [=](Scope& s, const Outputs& x) { return op(s, x[0]); }, {-1, 3});
}

TEST(Values, GradientPassesThroughIdentityAndCopy) {
  for (const Unary op : {identity, copy})
    expect_gradients({test_numbers({3})}, [=](Scope& s, const Outputs& x) { return op(s, x[0]); });
  for (const Unary op : {stop_gradient, zeros_like, ones_like})
    expect_gradients({test_numbers({3})}, [=](Scope& s, const Outputs& x) { return op(s, x[0]); },
                     {.constant = {0}});
}

auto with_shape(const Shape& shape) {
  return [=](Scope& s, const Outputs& x) { return placeholder_with_default(s, x[0], shape); };
}

TEST(PlaceholderWithDefault, IsTheDefaultWhereItIsNotFed) {
  EXPECT_THAT(run_op({Tensor::of<float>({2}, {3, 4})}, with_shape({-1})).span<float>(), ElementsAre(3, 4));
}

TEST(PlaceholderWithDefault, HasTheShapeThatMayBeFed) {
  expect_shape({{2, 3}}, with_shape({-1, 3}), {-1, 3});
  EXPECT_THAT([] { run_op({Tensor(DType::f32, {2})}, with_shape({3})); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("[2]"), HasSubstr("[3]"))));
}

TEST(PlaceholderWithDefault, GradientPassesThrough) {
  expect_gradients({test_numbers({3})}, with_shape({3}));
}

}  // namespace
}  // namespace kolo
