// What a variable is to the ranks of a training and to its checkpoints, where it belongs to the way in which
// a graph is trained rather than to its model; and how what the ranks hold together comes into one
// checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/variables.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>

namespace kolo {

namespace detail {
struct RankTensor;
}

/// The elements [first, first + count) of a tensor, row-major.
struct ElementRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool operator==(const ElementRange&) const = default;
};

/// Of one variable on one rank.
struct RankState {
  enum class Kind {
    shared,  // the same on all ranks: a broadcast of a session's state gives them rank 0's, which is saved
    own,     // each rank has its own value (what a compression has left out so far), which no other is given.
             // A checkpoint holds those of all ranks; with another number of ranks they start from it with
             // their first values
    part,    // this rank's own elements of `whole`, which checkpoints hold in the variable's place: one in
             // which a whole variable of that name was saved fits, and each rank takes its part from it,
             // whatever number of ranks wrote it
    scratch,  // made anew in each step (a copy of a part of something): no checkpoint holds it, a restore
              // gives it its first value, a broadcast passes it over, and its shape may differ among the
              // ranks
  };
  /// A tensor of the variable's type: its name in checkpoints, the unsharded variable's, and its known shape.
  struct Whole {
    std::string name;
    Shape shape;
    bool operator==(const Whole&) const = default;
  };

  Kind kind = Kind::shared;
  Whole whole = {};         // of a part
  ElementRange range = {};  // of it; as many as the variable has, perhaps none: the count need not be given
  bool optional = false;    // a checkpoint may lack it, and gives it its first value then; an own one always
  bool operator==(const RankState&) const = default;
};

/// Notes it in the graph (and in an exported one). Of a part the variable's name is the same on all ranks,
/// its shape need not be, and together the ranks' parts are the whole. Throws InvalidArgumentError if the
/// part does not lie in the whole, if the whole's name is empty or that of a variable of this graph, or if
/// the variable is a part already; the graph is unchanged then.
void set_rank_state(Graph& graph, const Variable& variable, const RankState& state);
/// Shared, where nothing was noted. Looks through what was noted of all variables.
RankState rank_state(const Variable& variable);
/// All parts in the order in which they were noted.
std::vector<std::pair<Variable, RankState>> rank_parts(const Graph& graph);

/// Whether a checkpoint of the session needs all ranks of the group: there are several, and its graph holds
/// parts, or, beside a training step that all ranks share, variables of which each rank has its own value.
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
  /// not fit each other, where their parts do not make up the whole tensor, or `Attempting to use
  /// uninitialized value <name>`; ResourceExhaustedError where rank 0 has no memory for it; AbortedError
  /// `rank <r>: <text>` where that rank refused; and what the group throws.
  explicit GatheredState(Session& session, Group& group = world_group());
  /// layout: what the ranks have found of the session before (rank_state_internal.h): it does not change.
  GatheredState(Session& session, Group& group, const std::vector<detail::RankTensor>& layout);

  /// In place of the constructor, on a rank that has failed while the others come to save: none waits for it
  /// then, and nothing is saved. Throws what the group throws.
  static void refuse(const std::string& text, Group& group = world_group());

  /// On rank 0 where the state is spread, else none: copies, by their names in a checkpoint.
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }

 private:
  void gather(Session& session, Group& group, const std::vector<detail::RankTensor>& layout);

  std::map<std::string, Tensor> tensors_;
};

}  // namespace kolo
