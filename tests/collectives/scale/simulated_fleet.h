// The watchdogs of a thousand ranks in one process, on a clock that the test turns: what their communication
// threads say to each other, counted. Notes of one pair of ranks arrive in order, one turn after they were
// sent.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/progress/watch.h>

namespace kolo {

struct Traffic {
  std::int64_t notes = 0, bytes = 0;  // sent
  std::set<int> partners;             // in both directions
};

class SimulatedFleet {
 public:
  using Clock = Watchdog::Clock;
  static constexpr auto kTurn = std::chrono::milliseconds(20);

  SimulatedFleet(int ranks, int ranks_of_host, StallLimits limits, std::uint32_t seed = 1)
      : random_(seed), order_(static_cast<std::size_t>(ranks)) {
    std::iota(order_.begin(), order_.end(), 0);
    std::vector<std::string> hosts;
    for (int rank = 0; rank < ranks; ++rank)
      hosts.push_back("node" + std::to_string(rank / ranks_of_host + 1));
    for (int rank = 0; rank < ranks; ++rank)
      ranks_.push_back(std::make_unique<Rank>(*this, rank, hosts, limits));
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  Watchdog& dog(int rank) { return ranks_[static_cast<std::size_t>(rank)]->dog; }
  const Traffic& traffic(int rank) const { return ranks_[static_cast<std::size_t>(rank)]->box.traffic; }
  void forget_traffic() {
    for (auto& rank : ranks_) rank->box.traffic = {};
  }
  std::mt19937& random() { return random_; }
  Clock::time_point now() const { return now_; }

  /// The rank waits for operation `ticket` of channel 0, and has finished all before.
  void enter(int rank, std::int64_t ticket = 0) {
    ranks_[static_cast<std::size_t>(rank)]->enter(now_, ticket);
  }
  void finish(int rank, std::int64_t ticket = 0) {
    ranks_[static_cast<std::size_t>(rank)]->waiting.clear();
    ranks_[static_cast<std::size_t>(rank)]->finished = {{0, ticket}};
  }
  void leave(int rank) {
    ranks_[static_cast<std::size_t>(rank)]->waiting.clear();
    dog(rank).announce_exit();
  }
  /// Its process is stopped or gone: it reads nothing and says nothing.
  void silence(int rank) { ranks_[static_cast<std::size_t>(rank)]->is_silent = true; }
  void wake(int rank) { ranks_[static_cast<std::size_t>(rank)]->is_silent = false; }
  bool is_silent(int rank) const { return ranks_[static_cast<std::size_t>(rank)]->is_silent; }
  bool is_waiting(int rank) const { return !ranks_[static_cast<std::size_t>(rank)]->waiting.empty(); }

  /// Every communication thread looks once, in random order, and ends what cannot end by itself.
  void turn() {
    now_ += kTurn;
    std::shuffle(order_.begin(), order_.end(), random_);
    for (const int place : order_) {
      Rank& rank = *ranks_[static_cast<std::size_t>(place)];
      if (rank.is_silent) continue;
      rank.dog.poll(now_, rank.waiting, rank.finished);
      if (rank.waiting.empty()) continue;
      if (const auto error = rank.dog.verdict(0, rank.waiting[0].ticket)) {
        rank.ended_by = error;
        rank.waiting.clear();
      }
    }
  }
  void pass(std::chrono::milliseconds time) {
    for (const auto end = now_ + time; now_ < end;) turn();
  }
  /// How long it takes until `done`; nothing if that is longer than `limit`.
  template <typename Condition>
  std::optional<std::chrono::milliseconds> pass_until(std::chrono::milliseconds limit,
                                                      const Condition& done) {
    const auto begin = now_;
    while (!done()) {
      if (now_ - begin >= limit) return std::nullopt;
      turn();
    }
    return std::chrono::duration_cast<std::chrono::milliseconds>(now_ - begin);
  }

  /// What has ended the last operation that the rank waited for; "": nothing.
  std::string verdict(int rank) const {
    const Rank& of = *ranks_[static_cast<std::size_t>(rank)];
    const auto error = of.ended_by ? of.ended_by : of.dog.given_up();
    if (!error) return "";
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& exception) {
      return exception.what();
    }
  }
  /// Of all ranks that can hear.
  template <typename Condition>
  bool all(const Condition& condition) {
    for (int rank = 0; rank < size(); ++rank)
      if (!is_silent(rank) && !condition(rank)) return false;
    return true;
  }
  std::int64_t most_notes() const {
    std::int64_t most = 0;
    for (const auto& rank : ranks_) most = std::max(most, rank->box.traffic.notes);
    return most;
  }
  std::int64_t most_bytes() const {
    std::int64_t most = 0;
    for (const auto& rank : ranks_) most = std::max(most, rank->box.traffic.bytes);
    return most;
  }
  std::int64_t all_notes() const {
    std::int64_t sum = 0;
    for (const auto& rank : ranks_) sum += rank->box.traffic.notes;
    return sum;
  }
  std::size_t most_partners() const {
    std::size_t most = 0;
    for (const auto& rank : ranks_) most = std::max(most, rank->box.traffic.partners.size());
    return most;
  }

 private:
  struct Box final : Mailbox {
    Box(SimulatedFleet& of, int own) : fleet(of), rank(own) {}
    void post(int to, const std::string& text) override {
      ++traffic.notes;
      traffic.bytes += static_cast<std::int64_t>(text.size());
      traffic.partners.insert(to);
      Box& other = fleet.ranks_.at(static_cast<std::size_t>(to))->box;
      other.traffic.partners.insert(rank);
      other.mails.push_back({fleet.now_, {rank, text}});
    }
    std::optional<Mail> take() override {
      if (mails.empty() || mails.front().first == fleet.now_) return std::nullopt;
      Mail mail = std::move(mails.front().second);
      mails.pop_front();
      return mail;
    }
    SimulatedFleet& fleet;
    const int rank;
    Traffic traffic;
    std::deque<std::pair<Clock::time_point, Mail>> mails;
  };
  struct Rank {
    Rank(SimulatedFleet& fleet, int own, const std::vector<std::string>& hosts, StallLimits limits)
        : box(fleet, own), dog(box, own, hosts, limits) {}
    void enter(Clock::time_point now, std::int64_t ticket) {
      finished = {{0, ticket - 1}};
      waiting = {{0, ticket, "bucket 0 (\"g\")", now}};
      ended_by = nullptr;
    }
    Box box;
    Watchdog dog;
    std::vector<Waiting> waiting;
    std::vector<Reached> finished = {{0, -1}};
    std::exception_ptr ended_by;
    bool is_silent = false;
  };

  std::mt19937 random_;
  Clock::time_point now_{std::chrono::hours(1)};
  std::vector<int> order_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace kolo
