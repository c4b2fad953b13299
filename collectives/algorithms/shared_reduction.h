// Reductions among the ranks of a node, straight from memory to memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/reduce/reduce_op.h>
#include <kolo/collectives/transport/node_channel.h>

namespace kolo {

/// Reduces `buffer` in place over the ranks of the channel. Each element is combined in rank order, in one
/// go, so 16-bit floats are rounded once and all ranks hold the same bits. op: any but adasum. divisor: what
/// average divides by.
/// Where the buffers of all ranks are node memory, each rank reduces its share in place, reading and writing
/// everybody's: 1/n of the elements, one pass, two meetings. Else they are cut into pieces that go through
/// the channel's slots; as do short ones, which are there after one meeting.
std::shared_ptr<Collective> shared_memory_allreduce(NodeChannel& channel, const TypedBuffer& buffer,
                                                    ReduceOp op, int divisor);

/// As Communicator::reduce_scatter.
std::shared_ptr<Collective> shared_memory_reduce_scatter(NodeChannel& channel, const TypedBuffer& buffer,
                                                         std::span<const std::int64_t> counts, ReduceOp op,
                                                         int divisor);

}  // namespace kolo
