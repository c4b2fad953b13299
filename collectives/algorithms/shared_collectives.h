// The collectives of the ranks of one node that see each other's memory.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include <kolo/collectives/algorithms/algorithm_context.h>
#include <kolo/collectives/transport/node_channel.h>
#include <kolo/collectives/transport/shared_memory_point_to_point.h>

namespace kolo {

/// Of one communicator. Operations start in the same order on all ranks, one after the other.
class NodeCollectives final : public LocalCollectives {
 public:
  /// channel: connected.
  explicit NodeCollectives(std::unique_ptr<NodeChannel> channel)
      : channel_(std::move(channel)), network_(*channel_) {}
  int size() const { return channel_->size(); }
  PointToPoint& network() { return network_; }

  /// As Communicator's. op: not adasum.
  std::shared_ptr<Collective> allreduce(const TypedBuffer& buffer, ReduceOp op);
  std::shared_ptr<Collective> reduce_scatter(const TypedBuffer& buffer, std::span<const std::int64_t> counts,
                                             ReduceOp op) override;
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
