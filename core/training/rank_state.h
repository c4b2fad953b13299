// Variables that belong to the way in which a graph is trained on several ranks rather than to its model:
// whose they are, of what they are a part, and how what the ranks hold together comes into one checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>

namespace kolo {

/// The collection of global variables that a checkpoint may lack: a saver that restores one without them
/// gives them their first values.
inline constexpr char kOptionalVariables[] = "optional_variables";
/// The collection of those of which each rank has its own value (what a compression has left out so far), and
/// of the parts and scratch. They are no rank's to give to another: a broadcast of a
/// session's state passes them over. A checkpoint holds those of all ranks; with another
/// number of ranks they start from it with their first values.
inline constexpr char kRankVariables[] = "rank_variables";

void mark_optional(Graph& graph, const Variable& variable);
/// Optional, too.
void mark_own_of_rank(Graph& graph, const Variable& variable);
bool is_optional(const Variable& variable);
bool is_own_of_rank(const Variable& variable);

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

/// Whether a checkpoint of the session needs all ranks of the group: there are several, and its graph holds
/// shards, or, beside a training step that all ranks share, variables of which each rank
/// has its own value.
bool is_spread_over_ranks(Session& session, const Group& group = world_group());

/// What rank 0 gives to Saver::save, which refuses to save spread state without it. A monitored session makes
/// one by itself: when it has been made and before it closes, where a hook of rank 0 saves then
/// (SessionRunHook::saves), and after each step for which a hook announced a save. In a loop of one's own:
///   const GatheredState together(session);  // on all ranks
///   if (rank() == 0) saver.save(session, prefix, step, {}, &together);
/// One thread, between runs.
class GatheredState {
 public:
  /// Collective, tensor by tensor; sends nothing where the state is not spread. Rank 0 holds copies of the
  /// whole tensors afterwards. Throws on every rank: FailedPreconditionError where the ranks' variables do
  /// not fit each other, where their shards do not make up the whole tensor, or `Attempting to use
  /// uninitialized value <name>`; ResourceExhaustedError where rank 0 has no memory for it; AbortedError
  /// `rank <r>: <text>` where that rank refused; and what the group throws.
  explicit GatheredState(Session& session, Group& group = world_group());

  /// In place of the constructor, on a rank that has failed while the others come to save: none waits for it
  /// then, and nothing is saved. Throws what the group throws.
  static void refuse(const std::string& text, Group& group = world_group());

  /// On rank 0 where the state is spread, else none: copies, by their names in a checkpoint.
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }

 private:
  std::map<std::string, Tensor> tensors_;
};

}  // namespace kolo
