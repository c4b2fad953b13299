// What the ranks hold together: who has which part of which tensor, under which names a checkpoint holds it,
// and how each rank gets its part back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/rank_state.h>

namespace kolo::detail {

/// The rank that reads and writes checkpoints.
inline constexpr int kSpreadRoot = 0;

/// The global variables that are their rank's own and are saved, by name.
std::vector<Variable> spread_variables(const Graph& graph);

/// A variable of this rank and its counterparts on the others.
struct SpreadTensor {
  struct Part {
    std::int64_t first = 0;  // of a shard; else 0
    std::int64_t elements = 0;
  };
  Variable variable;
  std::optional<ShardOf> whole;  // nothing: each rank has a whole value of its own
  std::vector<Part> parts;       // by rank
};

struct SpreadCheck {
  bool must_be_initialized = false;
};

/// The same list on all ranks but for `variable`, sorted by names. Collective. Throws on every rank as
/// GatheredState does.
std::vector<SpreadTensor> compare_spread_state(Group& group, Session& session, const SpreadCheck& check);
/// In place of it: ends the others in AbortedError. Collective.
void refuse_spread_state(Group& group, const std::string& text);

/// A view of `elements` elements of `whole` from `first` on, as a list.
Tensor part_of(const Tensor& whole, std::int64_t first, std::int64_t elements);

/// "w/topk_error/rank_2": rank 2's own value in a checkpoint of several ranks.
std::string name_of_rank(const std::string& variable, int rank);
/// From which tensor of a checkpoint one of `ranks` ranks takes a variable, whole or in part; nothing: it has
/// none, and the variable starts afresh. Of variables that each rank has its own value of: that of the same
/// rank where as many ranks wrote it; one under the variable's name (of one rank, or of rank 0) is rank 0's.
std::optional<std::string> name_in_checkpoint(const CheckpointIndex& index, const Variable& variable,
                                              int rank, int ranks);
/// How many ranks' own values of the variable a checkpoint holds under their ranks' names.
int ranks_in_checkpoint(const CheckpointIndex& index, const std::string& variable);

/// After rank 0 has restored checkpoint `path` (which it alone gives; nothing: there was none) and all others
/// have run the initialisers: each rank gets what is its own of it. Collective; does nothing where the state
/// is not spread. Throws on every rank what reading throws on rank 0.
void scatter_checkpoint(Group& group, Session& session, const std::optional<std::string>& path);

}  // namespace kolo::detail
