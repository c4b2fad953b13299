// What the ranks hold together: who has which part of which tensor, under which names a checkpoint holds it,
// and how each rank gets its part back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>
#include <kolo/core/training/checkpoint_files.h>
#include <kolo/core/training/rank_state.h>

namespace kolo::detail {

/// What rank_state() says of all variables of a graph, looked up once.
class RankStates {
 public:
  explicit RankStates(const Graph& graph);
  const RankState& of(const Variable& variable) const;

 private:
  std::map<const Node*, RankState> noted_;
};

/// What must be the same on all ranks: `f32 [4,3]`, of a part the whole's (`part of "w/Adam" f32 [4,3]`), of
/// scratch the type alone.
std::string description_of(const Variable& variable, const RankState& state);

/// A variable of this rank and its counterparts on the others.
struct RankTensor {
  Variable variable;
  RankState state;                   // own, or a part
  std::vector<ElementRange> ranges;  // by rank, of the whole; of own values all elements
};
/// Sorted by names; the same on all ranks but for `variable` and what is this rank's own in `state`.
using RankLayout = std::vector<RankTensor>;

/// Nothing where the state is not spread. Collective. Throws on every rank as GatheredState does.
RankLayout compare_rank_states(Group& group, Session& session);

/// The elements `range` of `whole`, as a list; a view.
Tensor part_of(const Tensor& whole, const ElementRange& range);

/// "w/topk_error/rank_2": rank 2's own value in a checkpoint of several ranks.
std::string name_of_rank(const std::string& variable, int rank);
/// From which tensor of a checkpoint one of `ranks` ranks takes a variable, whole or in part; nothing: it has
/// none, and the variable starts afresh. Of variables that each rank has its own value of: that of the same
/// rank where as many ranks wrote it; one under the variable's name (of one rank, or of rank 0) is rank 0's.
std::optional<std::string> name_in_checkpoint(const CheckpointIndex& index, const Variable& variable,
                                              const RankState& state, int rank, int ranks);
/// How many ranks' own values of the variable a checkpoint holds under their ranks' names.
int ranks_in_checkpoint(const CheckpointIndex& index, const std::string& variable);

/// After rank 0 has restored checkpoint `path` (which it alone gives; nothing: there was none) and all others
/// have run the initialisers: each rank gets what is its own of it. Collective; sends nothing for an empty
/// layout. Throws on every rank what reading throws on rank 0.
void scatter_checkpoint(Group& group, Session& session, const RankLayout& layout,
                        const std::optional<std::string>& path);

}  // namespace kolo::detail
