// How the elements of gradients and variables are divided among ranks that each update a part of them: ranges
// of whole buckets, so that what a rank owns is reduced and sent in place.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <kolo/collectives/schedule/bucket.h>
#include <kolo/collectives/schedule/spec.h>
#include <kolo/core/graph/scope.h>

namespace kolo {

/// A gradient that a sharded group_reduce (group_ops.h) has reduced.
struct ShardedGradient {
  const Node* group = nullptr;
  int index = 0;  // among the node's gradients
};
/// What x was reduced by, perhaps cast, checked or scaled by a number since then; nothing for what was
/// computed in another way or is no result of a sharded reduction.
std::optional<ShardedGradient> sharded_source(const Output& x);
/// What this rank owns of each gradient of a sharded group, in the order of its inputs.
std::vector<OwnedPart> own_parts(const Node& group);

/// What each rank owns of one gradient of a sharded group, in the order of the ranks.
std::vector<OwnedPart> parts_of_ranks(const Node& group, int gradient);

/// The elements of `part` of x, as a vector. Casts and the like between a sharded reduction and x are
/// repeated for the part alone: where nobody wants more of a bucket, no more of it is reduced here.
Output own_shard(const Scope& s, const Output& x, const OwnedPart& part);

/// Of a variable that each rank has updated its part of.
struct UpdatedPart {
  int gradient = 0;  // of the group: the ranks own of the variable what they own of that
  Output part;       // this rank's elements
};
/// What `node`, of any op, gathers: the group and the updated parts; nothing if it is no gathering.
std::optional<std::pair<const Node*, std::vector<UpdatedPart>>> gathered_by(const Node& node);
/// The whole of each, as a vector, on every rank; in steps in which the group's reductions happen. Each
/// gradient once in a graph. Those in one bucket are of one type.
Outputs gather_shards(const Scope& s, const Node& group, const std::vector<UpdatedPart>& parts);

namespace detail {

inline constexpr char kOwnShardOp[] = "OwnShard";
inline constexpr char kGatherShardsOp[] = "GatherShards";

/// Each rank keeps a part of every bucket.
bool is_sharded(const Node& group);
/// Throws FailedPreconditionError if the node was built for another rank, or for another number of them.
void check_built_for_this_rank(const Node& group);
/// For its schedule, in the backward order: what the graph takes of each gradient, and the variables that are
/// gathered.
std::vector<ShardSpec> shard_specs(const Node& group);
/// The group whose variables a GatherShards node gathers.
const Node& group_of_gather(const Node& gather);

}  // namespace detail
}  // namespace kolo
