#include <kolo/core/ops/range.h>

#include <gmock/gmock.h>

#include <kolo/core/base/error.h>

#include "tests/core/gradient_check.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

auto numbers(DType dtype, double start, double limit, double delta = 1) {
  return [=](Scope& s, const Outputs&) { return range(s, dtype, start, limit, delta); };
}

TEST(Range, CountsUpAndDown) {
  EXPECT_THAT(run_op({}, numbers(DType::i32, 0, 4)).span<std::int32_t>(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(run_op({}, numbers(DType::i64, 5, -2, -3)).span<std::int64_t>(), ElementsAre(5, 2, -1));
  EXPECT_THAT(run_op({}, numbers(DType::f32, 0.5, 2.01, 0.5)).span<float>(), ElementsAre(0.5f, 1, 1.5f, 2));
}

TEST(Range, DoesNotDrift) {
  const Tensor y = run_op({}, numbers(DType::f64, 0, 1000, 0.1));
  ASSERT_EQ(y.elements(), 10000);
  EXPECT_DOUBLE_EQ(y.data<double>()[9999], 999.9);
}

TEST(Range, HasAsManyElementsAsFit) {
  expect_shape({}, numbers(DType::i32, 0, 10, 3), {4});
  expect_shape({}, numbers(DType::i32, 0, 9, 3), {3});
  expect_shape({}, numbers(DType::f32, 1, 0, 1), {0});
}

TEST(Range, RefusesWhatIsNoRange) {
  EXPECT_THAT([] { run_op({}, numbers(DType::f32, 0, 1, 0)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("the last not 0")));
  EXPECT_THAT([] { run_op({}, numbers(DType::i32, 0, 1.5)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("1.5 is not a whole number")));
  EXPECT_THAT([] { run_op({}, numbers(DType::boolean, 0, 1)); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("bool was asked for")));
}

}  // namespace
}  // namespace kolo
