// Allreduce in two levels: the network between nodes carries each byte once per node, not once per rank.
#pragma once

#include <memory>

#include <kolo/collectives/algorithms/allreduce_registry.h>

namespace kolo {

/// Reduces `buffer` in place: reduce-scatter inside each node (by the context's local collectives, else over
/// the network), allreduce of each shard among the ranks that hold it, one on each node, all-gather inside
/// the node. Shards are as many as the smallest node has ranks; further ranks of larger nodes hold none. The
/// buffer is cut into up to eight pieces: while one is on the wire the node works on those before and behind
/// it. Any topology. Throws InvalidArgumentError where `op` is not defined for the type.
/// Cost: each node sends and receives 2(h−1)/h of the bytes over h nodes; memory for some chunks per piece.
std::shared_ptr<Collective> hierarchical_allreduce(const AlgorithmContext& context, const TypedBuffer& buffer,
                                                   ReduceOp op);

}  // namespace kolo
