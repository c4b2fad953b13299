// The collectives of the ranks of one node that see each other's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/reduce/reduction.h>
#include <kolo/collectives/transport/node_channel.h>
#include <kolo/collectives/transport/shared_memory_point_to_point.h>

namespace kolo {

/// A collective as a sequence of rounds of a NodeChannel.
/// Fills the own slot of each round and, when all ranks have posted it, takes what they have said. The next
/// round is filled before this one is taken, as far as the operation allows, so that ranks wait little for
/// each other. One thread at a time, as every Collective.
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

/// As Communicator::allgather. A block in its rank's node memory is copied from there by all others; another
/// goes through the channel's slots, as do short ones. With empty blocks a rank gives nothing and still waits
/// for all others.
std::shared_ptr<Collective> shared_memory_allgather(NodeChannel& channel,
                                                    std::span<const std::span<std::byte>> blocks);
/// As Communicator::broadcast.
std::shared_ptr<Collective> shared_memory_broadcast(NodeChannel& channel, std::span<std::byte> bytes,
                                                    int root);
/// As Communicator::barrier.
std::shared_ptr<Collective> shared_memory_barrier(NodeChannel& channel);

/// Reduces `buffer` in place over the ranks of the channel. Each element is combined in rank order, in one
/// go, so 16-bit floats are rounded once and all ranks hold the same bits. op: any but adasum. divisor: what
/// average divides by.
/// Where the buffers of all ranks are node memory, each rank reduces its share in place, reading and writing
/// everybody's: 1/n of the elements, one pass, two meetings. Else they are cut into pieces that go through
/// the channel's slots; as do short ones, which are there after one meeting.
std::shared_ptr<Collective> shared_memory_allreduce(NodeChannel& channel, const TypedBuffer& buffer,
                                                    ReduceOp op, double divisor);

/// As Communicator::reduce_scatter.
std::shared_ptr<Collective> shared_memory_reduce_scatter(NodeChannel& channel, const TypedBuffer& buffer,
                                                         std::span<const std::int64_t> counts, ReduceOp op,
                                                         double divisor);

/// Of one communicator. Operations start in the same order on all ranks, one after the other.
/// One thread at a time.
class NodeCollectives final : public LocalCollectives {
 public:
  /// channel: connected.
  explicit NodeCollectives(std::unique_ptr<NodeChannel> channel)
      : channel_(std::move(channel)), network_(*channel_) {}
  int size() const { return channel_->size(); }
  PointToPoint& network() { return network_; }

  /// As Communicator's. op: not adasum. divisor: what average divides by.
  std::shared_ptr<Collective> allreduce(const TypedBuffer& buffer, ReduceOp op, double divisor);
  std::shared_ptr<Collective> reduce_scatter(const TypedBuffer& buffer, std::span<const std::int64_t> counts,
                                             ReduceOp op, double divisor) override;
  std::shared_ptr<Collective> allgather(std::span<const std::span<std::byte>> blocks) override;
  std::shared_ptr<Collective> broadcast(std::span<std::byte> bytes, int root);
  std::shared_ptr<Collective> barrier();

  /// An operation over network(), told apart from those that call MPI; and as long as bytes move, it
  /// advances.
  std::shared_ptr<Collective> carried(std::shared_ptr<Collective> operation);

 private:
  const std::unique_ptr<NodeChannel> channel_;
  SharedMemoryPointToPoint network_;
};

}  // namespace kolo
