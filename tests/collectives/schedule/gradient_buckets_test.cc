#include <kolo/collectives/schedule/gradient_buckets.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(GradientBuckets, LeaveGradientsOfOneRankAsTheyAre) {
  std::vector<float> own = {1, 2, 3};
  GradientBuckets buckets({{"own", own.data(), 3}, {"inside", nullptr, 1}});
  auto* const inside = static_cast<float*>(buckets.memory(1));
  for (int step = 0; step < 3; ++step) {
    *inside = 7;
    buckets.ready(1);
    buckets.ready(0);
    buckets.wait();
    EXPECT_THAT(own, ElementsAre(1, 2, 3));
    EXPECT_EQ(*inside, 7);
  }
}

TEST(GradientBuckets, GiveEachGradientAnAlignedPlaceOfZeros) {
  GradientBuckets buckets({{"a", nullptr, 5}, {"b", nullptr, 70}, {"c", nullptr, 0}, {"d", nullptr, 1}});
  ASSERT_EQ(buckets.gradients(), 4);
  for (const int i : {0, 1, 2, 3})
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buckets.memory(i)) % kAlignment, 0u);
  const std::span<float> b(static_cast<float*>(buckets.memory(1)), 70);
  EXPECT_THAT(b, Each(0.0f));
}

TEST(GradientBuckets, StartANewBucketWhereTheLimitOrTheTypeSaysSo) {
  const GradientBucketsOptions options = {.first_bucket_bytes = 4096, .bucket_bytes = 4096};
  EXPECT_EQ(GradientBuckets({{"a", nullptr, 16}, {"b", nullptr, 16}}, options).buckets(), 1);
  EXPECT_EQ(GradientBuckets({{"a", nullptr, 16, DType::f64}, {"b", nullptr, 16}}, options).buckets(), 2);
  EXPECT_EQ(GradientBuckets({{"a", nullptr, 1024}, {"b", nullptr, 16}}, options).buckets(), 2);
}

TEST(GradientBuckets, NameWhatIsNotReadyAndGoOnWithItOnOneRank) {
  GradientBuckets buckets({{"a", nullptr, 1}, {"b", nullptr, 1}, {"c", nullptr, 1}});
  buckets.ready(1);
  EXPECT_THAT([&] { buckets.wait(); },
              ThrowsMessage<FailedPreconditionError>(
                  AllOf(HasSubstr("2 of 3 gradients are not ready: \"a\", \"c\"; "), HasSubstr("absent()"))));
  buckets.ready(0);
  buckets.absent(2);
  buckets.wait();
}

TEST(GradientBuckets, NameEightOfManyThatAreNotReady) {
  std::vector<NamedBuffer> gradients;
  for (int i = 0; i < 20; ++i) gradients.push_back({fmt::format("g{}", i), nullptr, 1});
  GradientBuckets buckets(gradients);
  EXPECT_THAT([&] { buckets.wait(); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("\"g7\" and 12 more")));
}

TEST(GradientBuckets, AbsentGradientIsZero) {
  std::vector<float> own = {1, 2, 3};
  GradientBuckets buckets({{"own", own.data(), 3}});
  buckets.absent(0);
  buckets.wait();
  EXPECT_THAT(own, ElementsAre(0, 0, 0));
}

TEST(GradientBuckets, RefuseAGradientThatIsReadyAlready) {
  GradientBuckets buckets({{"a", nullptr, 1}, {"b", nullptr, 1}});
  buckets.ready(0);
  EXPECT_THAT([&] { buckets.ready(0); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("the gradient \"a\" is ready already")));
  buckets.ready(1);
  buckets.wait();
}

TEST(GradientBuckets, RefuseAnIndexOutsideTheList) {
  GradientBuckets buckets({{"a", nullptr, 1}, {"b", nullptr, 1}});
  EXPECT_THAT([&] { buckets.ready(2); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("there is no gradient 2; the list has 2")));
  EXPECT_THROW(buckets.absent(-1), InvalidArgumentError);
  EXPECT_THROW(buckets.memory(2), InvalidArgumentError);
}

TEST(GradientBuckets, RefuseWhatCannotBeReduced) {
  EXPECT_THAT(
      [] {
        GradientBuckets({{"steps", nullptr, 1, DType::i32}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("the gradient of \"steps\" is int32")));
  EXPECT_THAT(
      [] {
        GradientBuckets({{"a", nullptr, -1}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("\"a\" has -1 elements")));
  EXPECT_THROW(GradientBuckets({{"a", nullptr, 1}}, {.op = ReduceOp::max}), InvalidArgumentError);
  EXPECT_THROW(GradientBuckets({{"a", nullptr, 1}}, {.bucket_bytes = -1}), InvalidArgumentError);
}

TEST(GradientBuckets, EmptyListMakesEmptySteps) {
  GradientBuckets buckets({});
  buckets.wait();
  buckets.wait();
  EXPECT_EQ(buckets.buckets(), 0);
}

TEST(BroadcastParameters, RefusesARootThatDoesNotExist) {
  EXPECT_THAT(
      [] { broadcast_parameters({}, 1); },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("root rank 1 is outside the process set of 1 ranks")));
}

}  // namespace
}  // namespace kolo
