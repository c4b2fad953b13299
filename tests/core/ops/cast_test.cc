#include <kolo/core/ops/math.h>

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include <kolo/core/base/error.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor cast_to(DType dtype, const Tensor& x) {
  return run_op({x}, [&](Scope& s, const Outputs& in) { return cast(s, in[0], dtype); });
}

TEST(Cast, ConvertsBetweenAllTypes) {
  const DType types[] = {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean,
                         DType::u8,  DType::i8,  DType::f16, DType::bf16};
  const Tensor ones_and_zero = Tensor::of<float>({2}, {1, 0});
  for (const DType from : types)
    for (const DType to : types) {
      const Tensor there = cast_to(to, cast_to(from, ones_and_zero));
      EXPECT_EQ(there.dtype(), to);
      EXPECT_THAT(cast_to(DType::f32, there).span<float>(), ElementsAre(1, 0))
          << name(from) << " to " << name(to);
    }
}

TEST(Cast, CutsFractionsAndClampsToTheRange) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::of<float>({6}, {1.9f, -1.9f, 1e20f, -kInfinity, std::nanf(""), 300});
  EXPECT_THAT(cast_to(DType::i32, x).span<std::int32_t>(), ElementsAre(1, -1, INT32_MAX, INT32_MIN, 0, 300));
  EXPECT_THAT(cast_to(DType::i64, x).span<std::int64_t>().first(4), ElementsAre(1, -1, INT64_MAX, INT64_MIN));
  EXPECT_THAT(cast_to(DType::u8, x).span<std::uint8_t>(), ElementsAre(1, 0, 255, 0, 0, 255));
}

TEST(Cast, EverythingButZeroIsTrue) {
  const Tensor x = Tensor::of<float>({3}, {0, -0.5f, std::nanf("")});
  EXPECT_THAT(cast_to(DType::boolean, x).span<bool>(), ElementsAre(false, true, true));
}

TEST(Cast, ToItsOwnTypeAddsNoNode) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f32, {2});
  EXPECT_EQ(cast(s, x, DType::f32), x);
}

TEST(Cast, RefusesStrings) {
  EXPECT_THAT([] { cast_to(DType::string, Tensor::scalar(1.0f)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("string")));
}

TEST(Cast, KeepsTheShape) {
  expect_shape({{-1, 3}}, [](Scope& s, const Outputs& x) { return cast(s, x[0], DType::i32); }, {-1, 3});
}

TEST(Cast, GradientIsCastBack) {
  // f32 rounds the values; large steps and a linear function keep the quotient exact enough.
  expect_gradients({test_numbers({3})},
                   [](Scope& s, const Outputs& x) { return cast(s, cast(s, x[0], DType::f32), DType::f64); },
                   {.step = 0.25, .tolerance = 1e-6});
}

TEST(Cast, GradientFlowsBetweenFloatsOnly) {
  Graph graph;
  Scope s(graph);
  const Output x = placeholder(s, DType::f64, {2});
  const Outputs through_f32 = gradients(s, {square(s, cast(s, x, DType::f32))}, {x});
  EXPECT_EQ(through_f32[0].dtype(), DType::f64);
  const Tensor dx = Session(graph).run(through_f32[0], {{x, Tensor::of<double>({2}, {1, 3})}});
  EXPECT_THAT(dx.span<double>(), ElementsAre(2, 6));
  EXPECT_FALSE(gradients(s, {cast(s, cast(s, x, DType::i32), DType::f64)}, {x})[0]);
}

}  // namespace
}  // namespace kolo
