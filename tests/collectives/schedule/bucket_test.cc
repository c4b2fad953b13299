#include <kolo/collectives/schedule/bucket.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kolo {
namespace {

using testing::ElementsAre;

constexpr BucketLimits kSmall{.first_bytes = 256, .bytes = 1024};

GradientSpec floats(std::int64_t elements, DType dtype = DType::f32) { return {"g", Shape{elements}, dtype}; }

std::vector<std::vector<int>> members(const std::vector<GradientSpec>& gradients,
                                      const BucketLimits& limits) {
  std::vector<std::vector<int>> lists;
  for (const auto& bucket : make_buckets(gradients, limits)) lists.push_back(bucket.gradients);
  return lists;
}

TEST(Bucket, FirstOneHasTheSmallerLimit) {
  const std::vector<GradientSpec> gradients(12, floats(15));  // 60 bytes, 64 with padding
  EXPECT_THAT(members(gradients, kSmall),
              ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11)));
}

TEST(Bucket, GradientLargerThanTheLimitIsAlone) {
  EXPECT_THAT(members({floats(1), floats(1000), floats(1)}, kSmall),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST(Bucket, LeavesAfterAGradientOfAQuarterOfTheLimit) {
  EXPECT_THAT(
      members({floats(1), floats(16), floats(1), floats(63), floats(1), floats(64), floats(1)}, kSmall),
      ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 4, 5), ElementsAre(6)));
}

TEST(Bucket, LeavesWhenItHoldsAMegabyte) {
  // 400,000 bytes each: the third one makes it 1.2 MB, far below the limit.
  const std::vector<GradientSpec> gradients(7, floats(100'000));
  EXPECT_THAT(members(gradients, {.first_bytes = 1 << 24, .bytes = 1 << 24}),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5), ElementsAre(6)));
}

TEST(Bucket, HoldsOneTypeOnly) {
  EXPECT_THAT(members({floats(1), floats(1, DType::bf16), floats(1, DType::bf16), floats(1)}, kSmall),
              ElementsAre(ElementsAre(0), ElementsAre(1, 2), ElementsAre(3)));
}

TEST(Bucket, GivesAGroupABucketOfItsOwnWhateverTheLimits) {
  std::vector<GradientSpec> gradients(7, floats(15));
  for (const int i : {1, 2}) gradients[i].group = 4;
  for (const int i : {3, 4}) gradients[i].group = 0;
  gradients[3].shape = {1000};
  EXPECT_THAT(members(gradients, kSmall),
              ElementsAre(ElementsAre(0), ElementsAre(1, 2), ElementsAre(3, 4), ElementsAre(5, 6)));
}

TEST(Bucket, AlignsEveryGradientTo64Bytes) {
  const std::vector<GradientSpec> gradients = {floats(1), floats(0), floats(17), floats(3)};
  const auto buckets = make_buckets(gradients, {.first_bytes = 4096, .bytes = 4096});
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_THAT(buckets[0].offsets, ElementsAre(0, 64, 64, 192));
  EXPECT_EQ(buckets[0].bytes, 256);
}

// Backward order of the models' gradients: the dense gradient of 12.8 MB leaves before the convolutions are
// done.
TEST(Bucket, SendsLenetsDenseGradientAlone) {
  const auto f32 = [](const char* name, Shape shape) { return GradientSpec{name, shape, DType::f32}; };
  EXPECT_THAT(members({f32("fc2/b", {10}), f32("fc2/w", {1024, 10}), f32("fc1/b", {1024}),
                       f32("fc1/w", {3136, 1024}), f32("conv2/b", {64}), f32("conv2/w", {64, 32, 5, 5}),
                       f32("conv1/b", {32}), f32("conv1/w", {32, 1, 5, 5})},
                      BucketLimits{}),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3), ElementsAre(4, 5, 6, 7)));
}

// The reduction of the second layer's gradient is hidden behind the computing of the first's.
TEST(Bucket, SendsEachLargeLayerOfAPerceptronAlone) {
  const auto f32 = [](const char* name, Shape shape) { return GradientSpec{name, shape, DType::f32}; };
  EXPECT_THAT(members({f32("fc3/b", {10}), f32("fc3/w", {1024, 10}), f32("fc2/b", {1024}),
                       f32("fc2/w", {1024, 1024}), f32("fc1/b", {1024}), f32("fc1/w", {784, 1024})},
                      BucketLimits{}),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3), ElementsAre(4, 5)));
}

TEST(Bucket, IsNotNeededForNoGradients) { EXPECT_TRUE(make_buckets({}, kSmall).empty()); }

}  // namespace
}  // namespace kolo
