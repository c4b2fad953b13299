// A collective as a sequence of rounds of a NodeChannel.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/transport/node_channel.h>

namespace kolo {

/// Fills the own slot of each round and, when all ranks have posted it, takes what they have said. The next
/// round is filled before this one is taken, as far as the operation allows, so that ranks wait little for
/// each other.
class RoundOperation : public Collective {
 public:
  /// channel: outlives the operation.
  explicit RoundOperation(NodeChannel& channel) : channel_(channel) {}
  bool needs_comm_thread() const final { return false; }
  void start() final {
    filled_ = taken_ = rounds_ = 0;
    is_seen_ = false;
    begin();
  }
  Progress progress() final;

 protected:
  /// Once for each start(); sets the rounds that are known.
  virtual void begin() = 0;
  /// Round k of the operation, from 0, has the number `round` on the channel.
  virtual void fill(std::int64_t k, std::uint64_t round) = 0;
  /// Returns false if there is more to do: it is called again, soon.
  virtual bool take(std::int64_t k, std::uint64_t round) = 0;

  /// ahead: whether a round is filled before the one in front of it is taken. May be called again in take(),
  /// with more rounds.
  void set_rounds(std::int64_t rounds, bool ahead) {
    rounds_ = rounds;
    ahead_ = ahead ? static_cast<std::int64_t>(NodeChannel::kAhead) : 1;
  }
  NodeChannel& channel() const { return channel_; }

 private:
  NodeChannel& channel_;
  std::int64_t rounds_ = 0, ahead_ = 1;
  std::int64_t filled_ = 0, taken_ = 0;
  std::uint64_t last_round_ = 0;  // of the channel: the one filled last
  bool is_seen_ = false;          // posted by all, and taken in part
};

}  // namespace kolo
