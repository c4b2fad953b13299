// The communicator's own algorithms and MPI's give the same results: rows 1, 2, 4 and 6 of the collectives'
// worked examples, for any number of ranks, and more.
#include <kolo/collectives/detail/mpi_communicator.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <kolo/collectives/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/runtime/group.h>

namespace kolo {
namespace {

using detail::MpiComm;
using detail::MpiCommunicator;
using testing::Each;
using testing::ElementsAre;

// MPI is used by the test's thread alone here; init() asked for MPI_THREAD_MULTIPLE.
class Algorithms : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    int level = 0;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) GTEST_SKIP() << "this MPI serves one thread only";
    communicator_ = std::make_unique<MpiCommunicator>(MpiComm::duplicate(MPI_COMM_WORLD),
                                                      Topology::one_node(size()), GetParam(), 1000);
  }
  static void run(const std::shared_ptr<Collective>& collective) {
    collective->start();
    while (collective->progress() != Progress::finished) {
    }
  }
  template <typename T>
  std::vector<T> allreduced(std::vector<T> values, ReduceOp op) {
    run(communicator_->allreduce(TypedBuffer::of(std::span<T>(values)), op));
    return values;
  }
  std::unique_ptr<MpiCommunicator> communicator_;
};

TEST_P(Algorithms, SumOverTheRanks) {
  const auto r = static_cast<float>(rank()), n = static_cast<float>(size());
  EXPECT_THAT(allreduced<float>({1 + r, 2 - r}, ReduceOp::sum),
              ElementsAre(n + n * (n - 1) / 2, 2 * n - n * (n - 1) / 2));
}

TEST_P(Algorithms, AverageOfRankPlusOne) {
  EXPECT_THAT(allreduced<float>({static_cast<float>(rank() + 1)}, ReduceOp::average),
              ElementsAre(static_cast<float>(size() + 1) / 2));
}

TEST_P(Algorithms, MaximumWithANanIsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto r = static_cast<float>(rank());
  EXPECT_THAT(allreduced<float>({r, rank() == 0 ? nan : 1.0f, -r}, ReduceOp::max),
              ElementsAre(static_cast<float>(size() - 1), testing::IsNan(), 0));
}

TEST_P(Algorithms, EightBitIntegersWrap) {
  const std::int8_t value = 127;
  const auto expected = static_cast<std::int8_t>(static_cast<std::uint8_t>(127 * size()));
  EXPECT_THAT(allreduced<std::int8_t>({value}, ReduceOp::sum), ElementsAre(expected));
}

TEST_P(Algorithms, HalvesAverage) {
  EXPECT_THAT(allreduced<Half>(std::vector<Half>(700, Half(3.0f)), ReduceOp::average), Each(Half(3.0f)));
}

TEST_P(Algorithms, AllRanksHoldTheSameBits) {
  for (const int elements : {0, 1, 2, 1001, 40000}) {
    std::mt19937 random(rank() + 1);
    std::vector<float> values(elements);
    for (auto& value : values)
      value = std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 40) - 20);
    const auto result = allreduced(values, ReduceOp::sum);
    const std::string bits(reinterpret_cast<const char*>(result.data()), result.size() * sizeof(float));
    EXPECT_THAT(world_group().allgather(bits), Each(bits)) << elements << " elements";
  }
}

TEST_P(Algorithms, WholeNumbersSumExactlyInAnyOrder) {
  std::vector<double> values(5003), expected(5003);
  for (int i = 0; i < 5003; ++i) {
    values[i] = i * (rank() + 1);
    expected[i] = i * size() * (size() + 1) / 2.0;
  }
  EXPECT_EQ(allreduced(values, ReduceOp::sum), expected);
}

INSTANTIATE_TEST_SUITE_P(Communicator, Algorithms, testing::Values("ring", "mpi"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace kolo
