#include <kolo/collectives/graph_ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>
#include <kolo/core/graph/gradients.h>
#include <kolo/core/ops/basic.h>

#include "tests/core/op_checks.h"

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
              ThrowsMessage<InvalidArgumentError>(HasSubstr("-1 bytes")));
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

}  // namespace
}  // namespace kolo
