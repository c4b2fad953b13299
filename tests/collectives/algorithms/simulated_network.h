// Hundreds of ranks in one process: what the algorithms send to each other goes through queues in memory.
// Messages take a random time on their way, and ranks are advanced in random order, so that nothing depends
// on luck.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <kolo/collectives/algorithms/allreduce_registry.h>

namespace kolo {

class SimulatedNetwork {
 public:
  SimulatedNetwork(int ranks, std::uint32_t seed) : SimulatedNetwork(Topology::one_node(ranks), seed) {}
  SimulatedNetwork(const Topology& topology, std::uint32_t seed) : random_(seed), topology_(topology) {
    const int ranks = topology.ranks();
    for (int rank = 0; rank < ranks; ++rank) ends_.push_back(std::make_unique<End>(*this, rank));
  }

  int size() const { return static_cast<int>(ends_.size()); }
  PointToPoint& end(int rank) { return *ends_[rank]; }
  AlgorithmContext context(int rank, std::int64_t chunk_bytes) {
    return {.network = end(rank), .topology = topology_, .chunk_bytes = chunk_bytes};
  }
  std::int64_t messages() const {
    std::int64_t sum = 0;
    for (const auto& end : ends_) sum += end->sent.messages;
    return sum;
  }
  /// What one rank sends.
  struct Sent {
    std::int64_t messages = 0, bytes = 0;
    std::set<int> partners;  // in both directions
  };
  const Sent& sent(int rank) const { return ends_[rank]->sent; }
  void forget_sent() {
    for (auto& end : ends_) end->sent = {};
  }

  /// Advances all operations, one for each rank, until all have finished. Fails the test if they get stuck.
  void run(const std::vector<std::shared_ptr<Collective>>& operations) {
    std::vector<std::size_t> unfinished;
    for (std::size_t i = 0; i < operations.size(); ++i) unfinished.push_back(i);
    for (auto& operation : operations) operation->start();
    for (int idle_rounds = 0; !unfinished.empty() && idle_rounds < 1000; ++idle_rounds) {
      std::shuffle(unfinished.begin(), unfinished.end(), random_);
      std::vector<std::size_t> still;
      for (const std::size_t i : unfinished) {
        const Progress progress = operations[i]->progress();
        if (progress != Progress::none) idle_rounds = 0;
        if (progress != Progress::finished) still.push_back(i);
      }
      unfinished.swap(still);
    }
    ASSERT_TRUE(unfinished.empty()) << unfinished.size() << " of " << operations.size() << " ranks are stuck";
  }

 private:
  // Meets when both sides have posted; the bytes are read then, so a sender that changes them too early is
  // found.
  struct Meeting {
    std::span<const std::byte> from;
    std::span<std::byte> to;
    bool sent = false, received = false;
    int delay = 0;
    bool done = false;
  };
  struct Link {
    std::deque<std::shared_ptr<Meeting>> waiting_sends, waiting_receives;
  };

  class End final : public PointToPoint {
   public:
    End(SimulatedNetwork& network, int rank) : network_(network), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return network_.size(); }
    Request send(int to, std::span<const std::byte> bytes) override {
      auto meeting = network_.meet(rank_, to, true);
      meeting->from = bytes;
      ++sent.messages;
      sent.bytes += static_cast<std::int64_t>(bytes.size());
      sent.partners.insert(to);
      return remember(std::move(meeting));
    }
    Request receive(int from, std::span<std::byte> bytes) override {
      auto meeting = network_.meet(from, rank_, false);
      meeting->to = bytes;
      sent.partners.insert(from);
      return remember(std::move(meeting));
    }
    bool test(Request request) override {
      Meeting& meeting = *requests_.at(request);
      if (!meeting.sent || !meeting.received) return false;
      if (!meeting.done) {
        if (meeting.delay-- > 0) return false;
        EXPECT_EQ(meeting.from.size(), meeting.to.size());
        std::memcpy(meeting.to.data(), meeting.from.data(), meeting.from.size());
        meeting.done = true;
      }
      requests_.erase(request);
      return true;
    }
    Sent sent;

   private:
    Request remember(std::shared_ptr<Meeting> meeting) {
      requests_[++last_] = std::move(meeting);
      return last_;
    }
    SimulatedNetwork& network_;
    const int rank_;
    Request last_ = 0;
    std::map<Request, std::shared_ptr<Meeting>> requests_;
  };

  std::shared_ptr<Meeting> meet(int from, int to, bool sending) {
    Link& link = links_[{from, to}];
    auto& partners = sending ? link.waiting_receives : link.waiting_sends;
    auto& own = sending ? link.waiting_sends : link.waiting_receives;
    std::shared_ptr<Meeting> meeting;
    if (partners.empty()) {
      meeting = std::make_shared<Meeting>();
      meeting->delay = static_cast<int>(random_() % 3);
      own.push_back(meeting);
    } else {
      meeting = partners.front();
      partners.pop_front();
    }
    (sending ? meeting->sent : meeting->received) = true;
    return meeting;
  }

  std::mt19937 random_;
  const Topology topology_;
  std::vector<std::unique_ptr<End>> ends_;
  std::map<std::pair<int, int>, Link> links_;
};

}  // namespace kolo
