// The update of variables in parts, of which each rank makes its own (ZeRO stage 1), as nodes of the graph.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <kolo/collectives/graph/sharding.h>
#include <kolo/optimizer/optimizer.h>

namespace kolo::detail {

class ShardedUpdate {
 public:
  /// What was reduced: pairs of a sharded reduction, perhaps cast since then.
  void add(std::span<const GradientPair> reduced);
  /// True (bool, a scalar) if all elements of all these are finite on all ranks, of which each looks at its
  /// own part. Pairs as in add.
  Output all_finite(const Scope& s, std::span<const GradientPair> reduced) const;
  /// The same pairs, of parts: what this rank owns of the gradient, and of the variable. Throws
  /// InvalidArgumentError for gradients of a reduction that some have been applied of, and for a variable
  /// that is not in a reduction, has been updated by it before, is divided in another way by another update,
  /// or does not fit its gradient; the graph is then unchanged.
  std::vector<GradientPair> parts(const Scope& s, std::span<const GradientPair> whole);
  /// What `apply` does with the pairs of parts(), and then all variables are whole again on all ranks. The
  /// variables that apply makes for parts are marked as shards.
  Operation update(const Scope& s, std::span<const GradientPair> parts,
                   const std::function<Operation(std::span<const GradientPair>)>& apply) const;
  /// The part of `variable` that this rank updates; none before parts().
  Variable part_of(const Variable& variable) const;

 private:
  struct Member {
    ShardedGradient gradient;
    OwnedPart own;
    Variable part;
  };

  static Member& member_of(std::vector<Member>& members, const Output& gradient);
  Member& member(const GradientPair& pair);

  // By the variable's storage: one for each compute_gradients, the last one at the end.
  std::map<const Node*, std::vector<Member>> members_;
  std::set<const Node*> applied_;                    // groups
  std::map<const Node*, ShardedGradient> applying_;  // by the variable's storage: of the last parts()
};

}  // namespace kolo::detail
