#include <kolo/collectives/schedule/spec.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kolo::detail {
namespace {

NamedTexts describe(const std::vector<GradientSpec>& gradients, ReduceOp op = ReduceOp::average,
                    const NamedTexts& options = {{"a setting", "100"}}) {
  return described(ScheduleSpec{.name = "test", .reduction = op, .gradients = gradients, .options = options});
}

std::string difference(std::vector<NamedTexts> all, std::span<const int> ranks = {}) {
  const auto found = first_difference(std::move(all));
  return found ? words_of(*found, ranks) : "";
}

const GradientSpec kBias{"fc1/b", Shape{1024}, DType::f32};
const GradientSpec kWide{"fc1/w", Shape{784, 1024}, DType::f32};
const GradientSpec kNarrow{"fc1/w", Shape{784, 1000}, DType::f32};
const GradientSpec kDouble{"fc1/w", Shape{784, 1024}, DType::f64};

TEST(ScheduleSpec, NamesGradientShapesAndRanks) {
  EXPECT_EQ(difference({describe({kBias, kWide}), describe({kBias, kNarrow})}),
            "gradient 1 is \"fc1/w\" [784,1024] on rank 0 but \"fc1/w\" [784,1000] on rank 1");
}

TEST(ScheduleSpec, NamesTheTypesWhereOnlyTheyDiffer) {
  EXPECT_EQ(
      difference({describe({kWide}), describe({kWide}), describe({kDouble})}),
      "gradient 0 is \"fc1/w\" [784,1024] float32 on rank 0 but \"fc1/w\" [784,1024] float64 on rank 2");
}

TEST(ScheduleSpec, NamesTheGradientThatOneRankLacks) {
  EXPECT_EQ(difference({describe({kBias, kWide}), describe({kBias})}),
            "gradient 1 is \"fc1/w\" [784,1024] on rank 0 but missing on rank 1");
  EXPECT_EQ(difference({describe({}), describe({kBias})}),
            "gradient 0 is missing on rank 0 but \"fc1/b\" [1024] on rank 1");
}

TEST(ScheduleSpec, NamesTheOptionWhenTheGradientsAgree) {
  EXPECT_EQ(difference({describe({kBias}), describe({kBias}, ReduceOp::sum)}),
            "the reduction is average on rank 0 but sum on rank 1");
  EXPECT_EQ(difference({describe({kBias}), describe({kBias}, ReduceOp::average, {{"a setting", "7"}})}),
            "a setting is 100 on rank 0 but 7 on rank 1");
}

TEST(ScheduleSpec, CallsRanksByTheNumbersThatItIsGiven) {
  EXPECT_THAT(difference({describe({kBias}), describe({})}, std::vector{2, 5}),
              testing::EndsWith("on rank 2 but missing on rank 5"));
}

TEST(ScheduleSpec, TellsOfRowsAndPartsToo) {
  ScheduleSpec rows{.name = "rows", .gathers = {{"table", {1000, 2}}}},
      parts{.name = "parts", .shards = {{}}};
  EXPECT_EQ(difference({described(rows), described(ScheduleSpec())}),
            "gradient 0 is \"table\" rows of [1000,2] by int32 on rank 0 but missing on rank 1");
  EXPECT_EQ(difference({described(ScheduleSpec()), described(parts)}),
            "the sharding is none on rank 0 but of parts on rank 1");
}

TEST(ScheduleSpec, HasNoDifferenceWhereAllAgree) {
  EXPECT_EQ(difference({describe({kBias}), describe({kBias})}), "");
}

}  // namespace
}  // namespace kolo::detail
