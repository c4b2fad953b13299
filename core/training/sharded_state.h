// State that is spread over the ranks: a variable that is this rank's part of a tensor, and one that no
// checkpoint needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/variables.h>

namespace kolo {

/// What a variable of this rank is a part of: the elements [first, first + the variable's own number) of a
/// tensor, row-major. The tensor has the variable's type.
struct ShardOf {
  std::string name;  // under which checkpoints hold the whole tensor: the unsharded variable's
  Shape shape;       // of the whole tensor; fully known
  std::int64_t first = 0;
  bool operator==(const ShardOf&) const = default;
};

/// The collection of the nodes "<variable>/shard_of" that say what a variable is a part of.
inline constexpr char kShards[] = "shards";
/// The collection of variables whose values are never saved.
inline constexpr char kScratchVariables[] = "scratch_variables";

/// From now on checkpoints hold `whole` in place of the variable, and a checkpoint in which a whole variable
/// of that name was saved fits: each rank takes its part from it, whatever number of ranks wrote it. The
/// variable is its rank's own (is_own_of_rank); its name is the same on all ranks, its shape need not be, and
/// it may have no elements. Together the ranks' parts are the whole tensor. A checkpoint must hold it, unless
/// the variable is marked as optional, too.
/// Throws InvalidArgumentError if the part does not lie in the whole, if the name is empty or that of a
/// variable of this graph, or if the variable has been marked before; the graph is unchanged then.
void mark_shard(Graph& graph, const Variable& variable, const ShardOf& whole);
/// Nothing for a variable that is no part.
std::optional<ShardOf> shard_of(const Variable& variable);
/// All parts in the order in which they were marked.
std::vector<std::pair<Variable, ShardOf>> shards(const Graph& graph);

/// The variable's value is made anew in each step (a copy of a part of something): no checkpoint holds it, a
/// restore gives it its first value, and a broadcast passes it over. Its shape may differ among the ranks.
void mark_scratch(Graph& graph, const Variable& variable);
bool is_scratch(const Variable& variable);

}  // namespace kolo
