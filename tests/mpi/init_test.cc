#include <kolo/collectives/job/init.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <kolo/core/base/process.h>
#include <kolo/core/runtime/group.h>

namespace kolo {
namespace {

TEST(Init, PutsAllRanksOfOneMachineOnOneHost) {
  EXPECT_LT(rank(), size());
  EXPECT_EQ(local_rank(), rank());
  EXPECT_EQ(local_size(), size());
  EXPECT_EQ(cross_rank(), 0);
  EXPECT_EQ(cross_size(), 1);
  EXPECT_EQ(node_count(), 1);
  EXPECT_TRUE(is_homogeneous());
  EXPECT_EQ(hostname(), process().hostname);
}

TEST(Init, SecondCallChangesNothing) {
  const int before = rank();
  init(nullptr, nullptr);
  EXPECT_EQ(rank(), before);
}

TEST(WorldGroup, GathersTextsOfDifferentLengthsInRankOrder) {
  auto& group = world_group();
  const auto texts = group.allgather(std::string(static_cast<std::size_t>(group.rank()) * 1000, 'x') + "end");
  ASSERT_EQ(static_cast<int>(texts.size()), size());
  for (int r = 0; r < size(); ++r)
    EXPECT_EQ(texts[r], std::string(static_cast<std::size_t>(r) * 1000, 'x') + "end");
}

TEST(WorldGroup, BroadcastsFromTheLastRank) {
  auto& group = world_group();
  const int root = size() - 1;
  const auto numbers = Tensor::of<float>({2}, {rank() + 0.5f, rank() * 2.0f});
  const auto none = Tensor::zeros(DType::i64, {0});
  group.broadcast(std::vector<Tensor>{numbers, none}, root);
  EXPECT_EQ(numbers.data<float>()[0], root + 0.5f);
  EXPECT_EQ(numbers.data<float>()[1], root * 2.0f);
  EXPECT_EQ(group.broadcast("from " + std::to_string(rank()), root), "from " + std::to_string(root));
  EXPECT_EQ(group.broadcast(std::string(), root), "");
}

TEST(WorldGroup, SharesTheFailureOfOneRank) {
  const int failing = size() - 1;
  EXPECT_THAT(
      [&] { throw_if_any_failed(world_group(), Code::not_found, rank() == failing ? "no such file" : ""); },
      testing::ThrowsMessage<NotFoundError>(testing::HasSubstr("no such file")));
}

}  // namespace
}  // namespace kolo
