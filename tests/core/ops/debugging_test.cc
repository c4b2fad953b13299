#include <kolo/core/ops/debugging.h>

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/math.h>

#include "tests/core/ops/compare_tensors.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Print, HandsItsInputOnAndWritesItsData) {
  Graph nothing;
  const Session first(nothing);  // of the process: it says which GPUs there are
  testing::internal::CaptureStderr();
  const Tensor y = run_op({Tensor::of<float>({2}, {1.5f, 2}), Tensor::of<std::int32_t>({4}, {4, 3, 2, 1})},
                          [](Scope& s, const Outputs& in) {
                            const Output text = constant(s, Tensor::of<std::string>({1}, {"a"}));
                            return print(s, in[0], {in[1], in[0], text}, {.message = "values "});
                          });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "values [4 3 2...][1.5 2][a]\n");
  EXPECT_THAT(y.span<float>(), ElementsAre(1.5f, 2));
}

TEST(Print, StopsAfterItsFirstRuns) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {});
  const Output y = print(s, x, {x}, {.first_n = 2, .summarize = -1});
  Session session(graph);
  testing::internal::CaptureStderr();
  for (const float value : {1.0f, 2.0f, 3.0f}) session.run(y, {{x, Tensor::scalar(value)}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[1]\n[2]\n");
}

TEST(Print, LetsGradientsPass) {
  testing::internal::CaptureStderr();
  const auto build = [](Scope& s, const Outputs& in) { return square(s, print(s, in[0], {in[1]})); };
  expect_gradients({test_numbers({3}), test_numbers({2})}, build, {.constant = {1}});
  testing::internal::GetCapturedStderr();
  expect_shape({{-1, 3}}, [](Scope& s, const Outputs& in) { return print(s, in[0], {}); }, {-1, 3});
}

TEST(AssertOp, FailsWithTheDataWhereItsConditionIsFalse) {
  Graph graph;
  Scope s(graph);
  const Output ok = placeholder(s, DType::boolean, {}), x = constant(s, Tensor::of<float>({4}, {1, 2, 3, 4}));
  const Operation check = assert_op(s, ok, {x, constant(s, 0.5f)});
  const Output y = neg(s.control_dependencies({check}), x);
  Session session(graph);
  EXPECT_EQ(session.run(y, {{ok, Tensor::scalar(true)}}).span<float>()[3], -4);
  EXPECT_THAT(
      [&] {
        session.run(y, {{ok, Tensor::scalar(false)}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("assertion failed: [1 2 3...] [0.5]")));
  record_op_check("Assert", OpCheck::value);
}

TEST(AssertOp, WantsAScalarCondition) {
  Graph graph;
  Scope s(graph);
  EXPECT_THAT([&] { assert_op(s, placeholder(s, DType::boolean, {2}), {}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("the condition is [2]")));
  record_op_check("Assert", OpCheck::shape);
}

TEST(CheckNumerics, NamesWhatItFinds) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const auto build = [](Scope& s, const Outputs& in) { return check_numerics(s, in[0], "loss"); };
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto check = [&](const Tensor& x) { run_op({dtype == DType::f32 ? to_f32(x) : x}, build); };
    EXPECT_THAT(
        [&] {
          check(Tensor::of<double>({3}, {1, nan, 2}));
        },
        ThrowsMessage<InvalidArgumentError>(HasSubstr("loss : Tensor had NaN values")));
    EXPECT_THAT(
        [&] {
          check(Tensor::of<double>({3}, {1, -infinity, 2}));
        },
        ThrowsMessage<InvalidArgumentError>(HasSubstr("loss : Tensor had Inf values")));
    EXPECT_THAT(
        [&] {
          check(Tensor::of<double>({3}, {infinity, nan, 2}));
        },
        ThrowsMessage<InvalidArgumentError>(HasSubstr("loss : Tensor had Inf and NaN values")));
  }
  const Tensor fine = Tensor::of<double>({3}, {1, -1e308, 0});
  expect_near(run_op({fine}, build), fine, 0);
  expect_shape({{-1, 3}}, build, {-1, 3});
}

TEST(CheckNumerics, ChecksItsGradientToo) {
  const auto build = [](Scope& s, const Outputs& in) { return sqrt(s, check_numerics(s, in[0], "x")); };
  expect_gradients({Tensor::of<double>({2}, {1, 2})}, build);
  EXPECT_THAT(
      [&] {
        run_op({Tensor::of<double>({1}, {0})},
               [&](Scope& s, const Outputs& in) { return gradients(s, {build(s, in)}, in)[0]; });
      },
      ThrowsMessage<InvalidArgumentError>(
          HasSubstr("Not a number (NaN) or infinity (Inf) values detected in gradient. x")));
}

}  // namespace
}  // namespace kolo
