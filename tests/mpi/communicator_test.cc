// The communicator's own algorithms and MPI's give the same results: rows 1, 2, 4, 6, 10, 11, 13 to 15, 18
// and 28 to 33 of the collectives' worked examples, for any number of ranks, and more.
#include <kolo/collectives/algorithms/mpi_communicator.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

#include <kolo/collectives/job/init.h>
#include <kolo/collectives/transport/mpi.h>
#include <kolo/core/base/error.h>
#include <kolo/core/runtime/group.h>

namespace kolo {
namespace {

using detail::MpiComm;
using detail::MpiCommunicator;
using testing::Each;
using testing::ElementsAre;

// MPI is used by the test's thread, and by the idle engine's: init() asked for MPI_THREAD_MULTIPLE.
// Advances the operation, and lets other ranks run where there are more of them than cores.
void run_alone(Collective& collective) {
  collective.start();
  for (Progress progress = Progress::none; progress != Progress::finished; progress = collective.progress())
    if (progress == Progress::none) std::this_thread::yield();
}

// Over MPI's messages, or the ranks' shared memory.
std::unique_ptr<MpiCommunicator> make_communicator(const Topology& topology, const char* allreduce,
                                                   bool shared) {
  MPI_Comm node_comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, topology.node_of(rank()), rank(), &node_comm);
  const MpiComm host = MpiComm::adopt(node_comm);
  const NodeView node = shared ? detail::connect_node_memory(host.get()) : NodeView();
  return std::make_unique<MpiCommunicator>(MpiComm::duplicate(MPI_COMM_WORLD), topology, allreduce, 1000,
                                           node);
}

class Algorithms : public testing::TestWithParam<std::pair<const char*, bool>> {
 protected:
  void SetUp() override {
    int level = 0;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) GTEST_SKIP() << "this MPI serves one thread only";
    communicator_ = make_communicator(topology(), GetParam().first, GetParam().second);
  }
  // As if there were two ranks on each node, where that matters.
  static Topology topology() {
    std::vector<int> leaders(size());
    for (int r = 0; r < size(); ++r)
      leaders[r] = GetParam().first == std::string("hierarchical") ? r - r % 2 : 0;
    return Topology(leaders);
  }
  static void run(const std::shared_ptr<Collective>& collective) { run_alone(*collective); }
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

// Wherever the ranks run; any two of these add up to more than f16 holds.
TEST_P(Algorithms, LargeHalvesAverage) {
  EXPECT_THAT(allreduced<Half>(std::vector<Half>(700, Half(40000.0f)), ReduceOp::average),
              Each(Half(40000.0f)));

  std::vector<Half> values(700, Half(40000.0f));
  std::vector<std::int64_t> counts(size(), 0);
  counts.back() = 700;
  run(communicator_->reduce_scatter(TypedBuffer::of(std::span(values)), counts, ReduceOp::average));
  if (rank() == size() - 1) {
    EXPECT_THAT(values, Each(Half(40000.0f)));
  }
}

TEST_P(Algorithms, AverageIsOverAsManyRanksAsIsSaid) {
  std::vector<Half> values(700, Half(rank() == 0 ? 0.0f : 40000.0f));
  run(communicator_->allreduce(TypedBuffer::of(std::span(values)), ReduceOp::average, {},
                               {.count = std::max(size() - 1, 1), .own = rank() > 0}));
  EXPECT_THAT(values, Each(Half(size() == 1 ? 0.0f : 40000.0f)));
}

// Row 7, where messages carry f32: from 2048 on each rounding to f16 would lose a 1.
TEST_P(Algorithms, HalvesAreRoundedOnceWhereMessagesCarryF32) {
  communicator_->tune({}, /*f32_wire=*/true);
  const Half expected(2048.0f + static_cast<float>(size() - 1));
  EXPECT_THAT(allreduced<Half>(std::vector<Half>(700, Half(rank() == 0 ? 2048.0f : 1.0f)), ReduceOp::sum),
              Each(expected));

  std::vector<Half> values(700, Half(rank() == 0 ? 2048.0f : 1.0f));
  std::vector<std::int64_t> counts(size(), 0);
  counts.back() = 700;
  run(communicator_->reduce_scatter(TypedBuffer::of(std::span(values)), counts, ReduceOp::sum));
  if (rank() == size() - 1) {
    EXPECT_THAT(values, Each(expected));
  }
}

TEST_P(Algorithms, AdasumOfHalvesIsRoundedOnceWhereMessagesCarryF32) {
  std::mt19937 random(rank() + 1);
  std::vector<Half> values;
  std::vector<float> wide;
  for (int i = 0; i < 999; ++i) {
    values.emplace_back(static_cast<float>(random() % 4096) / 1024.0f);
    wide.push_back(static_cast<float>(values.back()));
  }
  std::vector<Half> expected;
  for (const float value : allreduced(wide, ReduceOp::adasum)) expected.emplace_back(value);
  communicator_->tune({}, /*f32_wire=*/true);
  EXPECT_EQ(allreduced(values, ReduceOp::adasum), expected);
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

TEST_P(Algorithms, RunAgainOnTheSameBuffer) {
  std::vector<std::int64_t> values(2000, 1);
  const auto operation = communicator_->allreduce(TypedBuffer::of(std::span(values)), ReduceOp::sum);
  for (int turn = 0; turn < 3; ++turn) run(operation);
  EXPECT_THAT(values, Each(size() * size() * size()));
}

// Row 13: row i of every rank is i, of 2 n + 1 rows.
TEST_P(Algorithms, ReduceScatterGivesEachRankItsRows) {
  const std::int64_t rows = 2 * size() + 1;
  std::vector<float> values(rows);
  for (std::int64_t i = 0; i < rows; ++i) values[i] = static_cast<float>(i);
  std::vector<std::int64_t> counts(size(), 2);
  ++counts[0];
  run(communicator_->reduce_scatter(TypedBuffer::of(std::span(values)), counts, ReduceOp::sum));
  const std::int64_t first = rank() == 0 ? 0 : 2 * rank() + 1;
  for (std::int64_t i = first; i < first + counts[rank()]; ++i)
    EXPECT_EQ(values[i], static_cast<float>(i * size())) << i;
}

// Row 14.
TEST_P(Algorithms, ReduceScatterOfFewerRowsThanRanksLeavesSomeWithNone) {
  std::vector<double> values = {static_cast<double>(rank())};
  std::vector<std::int64_t> counts(size(), 0);
  counts[0] = 1;
  run(communicator_->reduce_scatter(TypedBuffer::of(std::span(values)), counts, ReduceOp::average));
  if (rank() == 0) {
    EXPECT_EQ(values[0], (size() - 1) / 2.0);
  }
}

struct AdasumRow {
  std::vector<std::vector<float>> vectors;
  float x, y;
};

// Rows 28 to 33, each where its number of ranks runs. Over nodes another formula holds.
TEST_P(Algorithms, AdasumGivesTheWorkedResults) {
  if (GetParam().first == std::string("hierarchical")) GTEST_SKIP();
  for (const auto& [vectors, x, y] :
       {AdasumRow{{{1, 0}, {0, 1}}, 1, 1}, AdasumRow{{{2, 0}, {2, 0}}, 2, 0},
        AdasumRow{{{1, 0}, {1, 1}}, 1.25, 0.75}, AdasumRow{{{3, 4}, {0, 0}}, 3, 4},
        AdasumRow{{{1, 0}, {1, 1}, {0, 2}, {1, -1}}, 1.3721719f, 0.8829185f},
        AdasumRow{{{1, 0}, {1, 1}, {0, 2}}, 0.95f, 1.65f}}) {
    if (static_cast<int>(vectors.size()) != size()) continue;
    EXPECT_THAT(allreduced(vectors[rank()], ReduceOp::adasum),
                ElementsAre(testing::FloatNear(x, 1e-6f), testing::FloatNear(y, 1e-6f)));
  }
}

INSTANTIATE_TEST_SUITE_P(Communicator, Algorithms,
                         testing::Values(std::pair("auto", false), std::pair("halving_doubling", false),
                                         std::pair("hierarchical", false), std::pair("mpi", false),
                                         std::pair("recursive_doubling", false), std::pair("ring", false),
                                         std::pair("tree", false), std::pair("auto", true),
                                         std::pair("halving_doubling", true), std::pair("hierarchical", true),
                                         std::pair("ring", true)),
                         [](const auto& info) {
                           return info.param.first +
                                  std::string(info.param.second ? "_in_shared_memory" : "");
                         });

class Operations : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    int level = 0;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) GTEST_SKIP() << "this MPI serves one thread only";
    communicator_ = make_communicator(Topology::one_node(size()), "auto", GetParam());
  }
  static void run(const std::shared_ptr<Collective>& collective) { run_alone(*collective); }
  std::unique_ptr<MpiCommunicator> communicator_;
};

template <typename T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

// Row 15, and arrays of many chunks.
TEST_P(Operations, BroadcastGivesTheRootsBytes) {
  for (const int root : {0, size() - 1})
    for (const int elements : {0, 1, 5003}) {
      std::vector<std::int32_t> values(elements, rank() + 1);
      run(communicator_->broadcast(bytes_of(values), root));
      EXPECT_THAT(values, Each(root + 1));
    }
}

TEST_P(Operations, BroadcastRefusesARootOutside) {
  EXPECT_THAT([&] { communicator_->broadcast({}, size()); },
              testing::ThrowsMessage<InvalidArgumentError>(testing::HasSubstr(
                  fmt::format("root rank {0} is outside the process set of {0} ranks", size()))));
}

// Rows 10 and 11: rank r has `scale` · r elements of value r; short and long ones take different ways.
TEST_P(Operations, AllgatherGivesAllBlocksInRankOrder) {
  for (const int scale : {0, 1, 20000}) {
    std::vector<std::vector<std::int32_t>> values(size());
    std::vector<std::span<std::byte>> blocks;
    for (int r = 0; r < size(); ++r) {
      values[r].assign(scale * r, r == rank() ? r : -1);
      blocks.push_back(bytes_of(values[r]));
    }
    const auto operation = communicator_->allgather(blocks);
    for (int turn = 0; turn < 2; ++turn) run(operation);
    for (int r = 0; r < size(); ++r) EXPECT_THAT(values[r], Each(r)) << scale;
  }
}

// Row 18: rank r sends j + 1 numbers to rank j, 10 r + 0, 1, …
TEST_P(Operations, AlltoallGivesEachRankItsSplits) {
  std::vector<std::vector<std::int32_t>> sent(size()), received(size());
  std::vector<std::span<const std::byte>> out;
  std::vector<std::span<std::byte>> in;
  for (int r = 0, next = 0; r < size(); ++r) {
    for (int k = 0; k <= r; ++k) sent[r].push_back(10 * rank() + next++);
    received[r].resize(rank() + 1);
    out.push_back(bytes_of(sent[r]));
    in.push_back(bytes_of(received[r]));
  }
  run(communicator_->alltoall(out, in));
  const int first = rank() * (rank() + 1) / 2;  // what went to the ranks before
  for (int r = 0; r < size(); ++r)
    for (int k = 0; k <= rank(); ++k) EXPECT_EQ(received[r][k], 10 * r + first + k) << "from rank " << r;
}

TEST_P(Operations, GatherAndScatterAreEachOthersReverse) {
  const int root = size() - 1;
  const bool is_root = rank() == root;
  std::vector<std::int32_t> own(rank() + 1, 7 * rank()), back(rank() + 1);
  std::vector<std::vector<std::int32_t>> gathered(is_root ? size() : 0);
  std::vector<std::span<std::byte>> in;
  std::vector<std::span<const std::byte>> out;
  for (int r = 0; is_root && r < size(); ++r) {
    gathered[r].resize(r + 1);
    in.push_back(bytes_of(gathered[r]));
    out.push_back(bytes_of(gathered[r]));
  }
  run(communicator_->gather(bytes_of(own), in, root));
  for (int r = 0; is_root && r < size(); ++r) EXPECT_THAT(gathered[r], Each(7 * r));
  run(communicator_->scatter(out, bytes_of(back), root));
  EXPECT_EQ(back, own);
}

// Another rank is the last in each turn. The ranks of a host read one clock.
TEST_P(Operations, BarrierLetsNobodyOutBeforeTheLastIsIn) {
  constexpr int kTurns = 5;
  const auto barrier = communicator_->barrier();
  std::vector<std::int64_t> in(kTurns), out(kTurns);
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  for (int turn = 0; turn < kTurns; ++turn) {
    if (turn % size() == rank()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    in[turn] = now();
    run(barrier);
    out[turn] = now();
  }
  for (int turn = 0; turn < kTurns; ++turn) {
    const auto all_in = world_group().allgather(std::to_string(in[turn]));
    for (const std::string& theirs : all_in) EXPECT_LE(std::stoll(theirs), out[turn]) << "turn " << turn;
  }
}

// The last rank comes first; if there is one between, it is left out.
TEST_P(Operations, SubsetNumbersItsMembersInTheirOrder) {
  if (size() == 1 || (rank() > 0 && rank() < size() - 1)) return;
  const std::vector<int> members = {size() - 1, 0};
  const auto pair = communicator_->subset(members, 5);
  EXPECT_EQ(pair->size(), 2);
  EXPECT_EQ(pair->rank(), rank() == 0 ? 1 : 0);
  EXPECT_EQ(pair->topology().ranks(), 2);
  std::vector<float> value = {static_cast<float>(rank())};
  run(pair->allreduce(TypedBuffer::of(std::span(value)), ReduceOp::sum));
  EXPECT_EQ(value[0], static_cast<float>(size() - 1));
}

// One operation of each is under way; rank 0 starts them in another order.
TEST_P(Operations, MessagesOfADuplicateNeverMeetTheOriginals) {
  const auto duplicate = communicator_->duplicate();
  std::vector<float> ones(3000, 1.0f), twos(3000, 2.0f);
  std::vector<std::shared_ptr<Collective>> operations = {
      communicator_->allreduce(TypedBuffer::of(std::span(ones)), ReduceOp::sum),
      duplicate->allreduce(TypedBuffer::of(std::span(twos)), ReduceOp::sum)};
  if (rank() == 0) std::swap(operations[0], operations[1]);
  for (const auto& operation : operations) operation->start();
  while (!operations.empty())
    std::erase_if(operations, [](auto& operation) { return operation->progress() == Progress::finished; });
  EXPECT_THAT(ones, Each(static_cast<float>(size())));
  EXPECT_THAT(twos, Each(2.0f * static_cast<float>(size())));
}

INSTANTIATE_TEST_SUITE_P(Communicator, Operations, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "SharedMemory" : "Messages");
});

}  // namespace
}  // namespace kolo
