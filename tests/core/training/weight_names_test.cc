#include <kolo/core/training/initial_weights.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const std::map<std::string, Tensor>& variables() {
  static const std::map<std::string, Tensor> all = {{"fc/w", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})},
                                                    {"fc/b", Tensor::of<float>({3}, {7, 8, 9})},
                                                    {"step", Tensor::scalar<std::int64_t>(4)}};
  return all;
}
const WeightNames kNames = {{"fc/w", "fc.weight.T"}, {"fc/b", "fc.bias"}};

TEST(WeightNames, TransposeAMatrixOnItsWayAndBack) {
  const auto others = to_weight_names(variables(), kNames);
  ASSERT_EQ(others.size(), 3U);
  EXPECT_EQ(others.at("fc.weight").shape(), Shape({3, 2}));
  EXPECT_THAT(others.at("fc.weight").span<float>(), ElementsAre(1, 4, 2, 5, 3, 6));
  const auto own = from_weight_names(others, kNames);
  ASSERT_EQ(own.size(), 3U);
  EXPECT_THAT(own.at("fc/w").span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(own.at("fc/w").shape(), Shape({2, 3}));
}

TEST(WeightNames, CopyNothingThatIsNotTransposed) {
  EXPECT_EQ(to_weight_names(variables(), kNames).at("fc.bias").raw(), variables().at("fc/b").raw());
}

TEST(WeightNames, LeaveOutWhatHasNone) {
  const auto others = to_weight_names(variables(), {{"fc/w", ""}, {"step", ""}});
  ASSERT_EQ(others.size(), 1U);
  EXPECT_EQ(others.begin()->first, "fc/b");
}

TEST(WeightNames, TakeATensorThatReallyIsCalledSo) {
  const Tensor matrix = variables().at("fc/w");
  const auto own = from_weight_names({{"a.T", matrix}}, {{"v", "a.T"}});
  EXPECT_EQ(own.at("v").raw(), matrix.raw());
  EXPECT_EQ(to_weight_names({{"a.T", matrix}}, {}).at("a.T").raw(), matrix.raw());
}

TEST(WeightNames, MayGiveOneTensorToTwoVariables) {
  const auto own = from_weight_names({{"tied", variables().at("fc/b")}}, {{"in", "tied"}, {"out", "tied"}});
  EXPECT_EQ(own.size(), 2U);
}

TEST(WeightNames, SayWhatDoesNotFit) {
  EXPECT_THAT(
      [] {
        from_weight_names(variables(), {{"v", "gone"}});
      },
      ThrowsMessage<NotFoundError>(
          "there is no tensor \"gone\", which the variable \"v\" is to be made from"));
  EXPECT_THAT(
      [] {
        from_weight_names(variables(), {{"v", "fc/b.T"}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("the transpose of \"fc/b\", which is f32 [3]")));
  EXPECT_THAT(
      [] {
        to_weight_names(variables(), {{"fc/w", "a"}, {"fc/b", "a"}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("are to become the tensor \"a\"")));
  EXPECT_THAT(
      [] {
        from_weight_names(variables(), {{"step", "fc/b"}});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("one of them \"step\"")));
}

}  // namespace
}  // namespace kolo
