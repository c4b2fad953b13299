#include <kolo/collectives/algorithms/message_collectives.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tests/collectives/algorithms/simulated_network.h>

namespace kolo {
namespace {

struct Broadcasts {
  std::vector<std::vector<std::uint8_t>> bytes;  // by rank, afterwards
  std::int64_t messages = 0;
};

Broadcasts broadcast_twice(int ranks, int root, int size, std::int64_t chunk_bytes) {
  SimulatedNetwork network(ranks, 7);
  Broadcasts result;
  result.bytes.resize(ranks, std::vector<std::uint8_t>(size));
  std::vector<std::shared_ptr<Collective>> operations;
  for (int rank = 0; rank < ranks; ++rank)
    operations.push_back(broadcast(network.end(rank), std::as_writable_bytes(std::span(result.bytes[rank])),
                                   root, chunk_bytes));
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < size; ++i) result.bytes[root][i] = static_cast<std::uint8_t>(i * 7 + turn);
    network.run(operations);
  }
  result.messages = network.messages() / 2;
  return result;
}

TEST(Broadcast, GivesTheRootsBytesToAllRanks) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 100, 257})
    for (const int size : {0, 1, 63, 64, 65, 5000})
      for (const int root : {0, ranks / 2, ranks - 1}) {
        const auto bytes = broadcast_twice(ranks, root, size, 64).bytes;
        for (int rank = 0; rank < ranks; ++rank)
          ASSERT_EQ(bytes[rank], bytes[root]) << "rank " << rank << " of " << ranks << ", root " << root;
        if (size > 1) {
          ASSERT_EQ(bytes[0][1], 8);
        }
      }
}

TEST(Broadcast, SendsEachChunkOnceToEachRank) {
  EXPECT_EQ(broadcast_twice(11, 3, 640, 64).messages, 10 * 10);
  EXPECT_EQ(broadcast_twice(11, 3, 0, 64).messages, 0);
}

/// Takes note of when it has finished.
class Noted final : public Collective {
 public:
  Noted(std::shared_ptr<Collective> operation, int late_rounds, int& started, int ranks)
      : operation_(std::move(operation)), late_rounds_(late_rounds), started_(started), ranks_(ranks) {}
  void start() override {}
  Progress progress() override {
    if (late_rounds_ > 0) {
      if (--late_rounds_ > 0) return Progress::advanced;
      ++started_;
      operation_->start();
    }
    const Progress progress = operation_->progress();
    if (progress == Progress::finished) {
      EXPECT_EQ(started_, ranks_);
    }
    return progress;
  }

 private:
  const std::shared_ptr<Collective> operation_;
  int late_rounds_;
  int& started_;
  const int ranks_;
};

TEST(Barrier, FinishesNowhereBeforeAllRanksHaveStartedIt) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 100, 257}) {
    for (const int late : {0, ranks - 1}) {
      SimulatedNetwork network(ranks, 7);
      int started = 0;
      std::vector<std::shared_ptr<Collective>> operations;
      for (int rank = 0; rank < ranks; ++rank)
        operations.push_back(std::make_shared<Noted>(dissemination_barrier(network.end(rank)),
                                                     rank == late ? 50 : 1, started, ranks));
      network.run(operations);
      EXPECT_EQ(started, ranks);
    }
  }
}

TEST(Barrier, SendsOneMessagePerRankAndRound) {
  SimulatedNetwork network(11, 7);
  std::vector<std::shared_ptr<Collective>> operations;
  for (int rank = 0; rank < 11; ++rank) operations.push_back(dissemination_barrier(network.end(rank)));
  network.run(operations);
  network.run(operations);
  EXPECT_EQ(network.messages(), 2 * 11 * 4);
}

}  // namespace
}  // namespace kolo
