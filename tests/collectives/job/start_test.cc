// What init() finds without and before MPI: MPI's parameters, the places of the ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/collectives/job/settings.h>
#include <kolo/collectives/transport/topology.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

class LauncherTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_PROCID",
                             "SLURM_STEP_NUM_TASKS", "PMI_RANK", "PMI_SIZE"})
      unsetenv(name);
  }
  void TearDown() override { SetUp(); }
};

class MpiParameters : public testing::Test {
 protected:
  static constexpr const char *kEagerLimit = "OMPI_MCA_btl_tcp_eager_limit",
                              *kMaxSendSize = "OMPI_MCA_btl_tcp_max_send_size";
  void SetUp() override {
    unsetenv(kEagerLimit);
    unsetenv(kMaxSendSize);
  }
  void TearDown() override { SetUp(); }
};

TEST_F(MpiParameters, LetAChunkGoOutOverTcpAtOnce) {
  detail::send_chunks_at_once(256 << 10);
  EXPECT_THAT(std::getenv(kEagerLimit), testing::StrEq("263168"));
  EXPECT_THAT(std::getenv(kMaxSendSize), testing::StrEq("263168"));
}

TEST_F(MpiParameters, AreLeftAloneWhereOneIsSet) {
  setenv(kMaxSendSize, "131072", 1);
  detail::send_chunks_at_once(256 << 10);
  EXPECT_THAT(std::getenv(kEagerLimit), testing::IsNull());
  EXPECT_THAT(std::getenv(kMaxSendSize), testing::StrEq("131072"));
}

TEST_F(MpiParameters, AreLeftAloneForChunksThatGoOutAtOnceAnyway) {
  detail::send_chunks_at_once(4096);
  EXPECT_THAT(std::getenv(kEagerLimit), testing::IsNull());
}

// Ranks 0, 2 and 4 on one host, 1 and 3 on another.
TEST(Topology, CountsRanksOnAHostAndHostsWithARank) {
  const std::vector<int> leaders = {0, 1, 0, 1, 0};
  const auto third_on_first = locate(4, Topology(leaders));
  EXPECT_EQ(third_on_first.local_rank, 2);
  EXPECT_EQ(third_on_first.local_size, 3);
  EXPECT_EQ(third_on_first.cross_rank, 0);
  EXPECT_EQ(third_on_first.cross_size, 1);
  EXPECT_EQ(third_on_first.node_count, 2);
  EXPECT_FALSE(third_on_first.homogeneous);
  const auto second_on_second = locate(3, Topology(leaders));
  EXPECT_EQ(second_on_second.local_rank, 1);
  EXPECT_EQ(second_on_second.cross_rank, 1);
  EXPECT_EQ(second_on_second.cross_size, 2);
}

TEST(Topology, IsHomogeneousWithEqualHosts) {
  EXPECT_TRUE(locate(3, Topology(std::vector<int>{0, 0, 2, 2})).homogeneous);
}

TEST_F(LauncherTest, NoneMakesOneRankThatKnowsItself) {
  const auto before = [](auto call) {
    EXPECT_THAT(call, testing::ThrowsMessage<FailedPreconditionError>(
                          testing::HasSubstr("kolo is not initialised; call kolo::init() first")));
  };
  before([] { rank(); });
  before([] { hostname(); });
  init(nullptr, nullptr);
  EXPECT_EQ(rank(), 0);
  EXPECT_EQ(size(), 1);
  EXPECT_EQ(node_count(), 1);
  shutdown();
  before([] { size(); });
}

}  // namespace
}  // namespace kolo
