// What moves bytes unchanged among the ranks of a node: allgather, broadcast, barrier.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/transport/node_channel.h>

namespace kolo {

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

}  // namespace kolo
