#include <kolo/collectives/graph/group_ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>

#include "tests/core/gradient_check.h"
#include "tests/core/op_checks.h"
#include "tests/core/run_op.h"
#include "tests/core/shape_check.h"

namespace kolo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class GroupAllreduceTest : public ::testing::Test {
 protected:
  Graph graph;
  Scope s{graph};
  const Output a = ones(s, DType::f32, {2, 3});
  const Output b = ones(s, DType::f64, {5});
};

TEST_F(GroupAllreduceTest, KeepsTheTypeAndShapeOfEachGradient) {
  const Outputs reduced = group_allreduce(s, {a, b}, {"a", "b"});
  ASSERT_EQ(reduced.size(), 2u);
  EXPECT_EQ(reduced[0].shape(), Shape({2, 3}));
  EXPECT_EQ(reduced[0].dtype(), DType::f32);
  EXPECT_EQ(reduced[1].shape(), Shape({5}));
  EXPECT_EQ(reduced[1].dtype(), DType::f64);
  record_op_check("GroupAllReduce", OpCheck::shape);
}

TEST_F(GroupAllreduceTest, NeedsANameForEachGradient) {
  EXPECT_THAT(
      [&] {
        group_allreduce(s, {a, b}, {"a"});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("1 names for 2 gradients")));
}

TEST_F(GroupAllreduceTest, RefusesNegativeLimits) {
  EXPECT_THAT([&] { group_allreduce(s, {a}, {"a"}, {.bucket_bytes = -1}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("bucket_bytes is -1")));
}

TEST_F(GroupAllreduceTest, RefusesToAverageWholeNumbers) {
  const Output whole = zeros(s, DType::i32, {2});
  EXPECT_THAT([&] { group_allreduce(s, {whole}, {"n"}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("average is not defined for int32")));
}

TEST_F(GroupAllreduceTest, NeedsShapesThatTheGraphKnows) {
  const Output open = placeholder(s.named("p"), DType::f32, {-1, 3});
  EXPECT_THAT([&] { group_allreduce(s, {open}, {"w"}); },
              ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("\"w\""), HasSubstr("[?,3]"))));
}

// Silently wrong second derivatives would be worse.
TEST_F(GroupAllreduceTest, HasNoGradient) {
  const Outputs reduced = group_allreduce(s.named("reduce"), {a}, {"a"});
  EXPECT_THAT([&] { gradients(s, reduced, {a}); },
              ThrowsMessage<NotFoundError>(HasSubstr("No gradient defined for operation 'reduce'")));
}

TEST_F(GroupAllreduceTest, GivesAllRanksRowsOfWhichNobodyKnowsHowMany) {
  const IndexedSlices slices = {
      .values = ones(s, DType::f32, {2, 3}), .indices = zeros(s, DType::i64, {2}), .dense_shape = {9, 3}};
  const GroupReduced reduced =
      group_reduce(s, {.gradients = {a}, .names = {"a"}, .slices = {slices}, .slice_names = {"table"}});
  EXPECT_EQ(reduced.gradients.at(0).shape(), Shape({2, 3}));
  EXPECT_EQ(reduced.slices.at(0).values.shape(), Shape({-1, 3}));
  EXPECT_EQ(reduced.slices.at(0).indices.shape(), Shape({-1}));
  EXPECT_EQ(reduced.slices.at(0).indices.dtype(), DType::i64);
}

TEST_F(GroupAllreduceTest, RefusesAdasumOfSlices) {
  const IndexedSlices slices = {
      .values = ones(s, DType::f32, {2}), .indices = zeros(s, DType::i32, {2}), .dense_shape = {9}};
  EXPECT_THAT(
      [&] {
        group_reduce(s, {.gradients = {}, .names = {}, .slices = {slices}, .slice_names = {"table"}},
                     {.op = ReduceOp::adasum});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("adasum is not defined for slices (\"table\")")));
}

TEST_F(GroupAllreduceTest, RefusesAPredivisionThatCannotBe) {
  for (const double factor : {0.0, 1e-6, 1e6})
    EXPECT_THAT([&] { group_allreduce(s, {a}, {"a"}, {.predivide_factor = factor}); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("it must be between")));
}

// On one rank; tests/mpi has several.
TEST(Allreduce, IsAnIdentityThatGradientsFlowThrough) {
  const auto build = [](Scope& s, const Outputs& x) { return scheduled_allreduce(s, x[0]); };
  const Tensor x = Tensor::of<double>({2}, {3, -4});
  EXPECT_THAT(run_op({x}, build).span<double>(), ::testing::ElementsAre(3, -4));
  expect_shape({{2, 3}}, build, {2, 3});
  expect_gradients({x}, [](Scope& s, const Outputs& in) { return scheduled_allreduce(s, square(s, in[0])); });
}

TEST(Allreduce, ByAdasumHasNoGradient) {
  Graph graph;
  Scope s(graph);
  const Output x = ones(s, DType::f32, {2});
  const Output y = scheduled_allreduce(s, x, ReduceOp::adasum);
  EXPECT_THAT([&] { gradients(s, {y}, {x}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("allreduce by adasum has no gradient")));
}

TEST(Allreduce, NeedsAKnownShape) {
  Graph graph;
  Scope s(graph);
  EXPECT_THAT([&] { scheduled_allreduce(s, placeholder(s, DType::f32, {-1})); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("is [?]; it must be fully known")));
}

}  // namespace
}  // namespace kolo
