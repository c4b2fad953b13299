#include <kolo/collectives/schedule/schedule_hash.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kolo {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

std::string describe(const std::vector<GradientSpec>& gradients, ReduceOp op = ReduceOp::average,
                     const Options& options = {{"the bucket limit", "100"}}) {
  return describe_schedule(op, options, gradients);
}

const GradientSpec kBias{"fc1/b", Shape{1024}, DType::f32};
const GradientSpec kWide{"fc1/w", Shape{784, 1024}, DType::f32};
const GradientSpec kNarrow{"fc1/w", Shape{784, 1000}, DType::f32};
const GradientSpec kDouble{"fc1/w", Shape{784, 1024}, DType::f64};

TEST(ScheduleHash, DiffersWhereADescriptionDoes) {
  EXPECT_EQ(schedule_hash(describe({kBias})).size(), 32u);
  EXPECT_EQ(schedule_hash(describe({kBias, kWide})), schedule_hash(describe({kBias, kWide})));
  EXPECT_NE(schedule_hash(describe({kBias, kWide})), schedule_hash(describe({kWide, kBias})));
  EXPECT_NE(schedule_hash(describe({kWide})), schedule_hash(describe({kNarrow})));
  EXPECT_NE(schedule_hash(describe({kWide})), schedule_hash(describe({kWide}, ReduceOp::sum)));
}

TEST(FirstDisagreement, NamesGradientShapesAndRanks) {
  EXPECT_EQ(first_disagreement(std::vector{describe({kBias, kWide}), describe({kBias, kNarrow})}),
            "gradient 1 is \"fc1/w\" [784,1024] on rank 0 but \"fc1/w\" [784,1000] on rank 1");
}

TEST(FirstDisagreement, NamesTheTypesWhereOnlyTheyDiffer) {
  EXPECT_EQ(
      first_disagreement(std::vector{describe({kWide}), describe({kWide}), describe({kDouble})}),
      "gradient 0 is \"fc1/w\" [784,1024] float32 on rank 0 but \"fc1/w\" [784,1024] float64 on rank 2");
}

TEST(FirstDisagreement, NamesTheGradientThatOneRankLacks) {
  EXPECT_EQ(first_disagreement(std::vector{describe({kBias, kWide}), describe({kBias})}),
            "gradient 1 is \"fc1/w\" [784,1024] on rank 0 but missing on rank 1");
  EXPECT_EQ(first_disagreement(std::vector{describe({}), describe({kBias})}),
            "gradient 0 is missing on rank 0 but \"fc1/b\" [1024] on rank 1");
}

TEST(FirstDisagreement, NamesTheOptionWhenTheGradientsAgree) {
  EXPECT_EQ(first_disagreement(std::vector{describe({kBias}), describe({kBias}, ReduceOp::sum)}),
            "the reduction is average on rank 0 but sum on rank 1");
  EXPECT_EQ(first_disagreement(std::vector{
                describe({kBias}), describe({kBias}, ReduceOp::average, {{"the bucket limit", "7"}})}),
            "the bucket limit is 100 on rank 0 but 7 on rank 1");
}

TEST(FirstDisagreement, IsEmptyWhenAllAgree) {
  EXPECT_EQ(first_disagreement(std::vector{describe({kBias}), describe({kBias})}), "");
}

}  // namespace
}  // namespace kolo
