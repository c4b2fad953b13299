// The tree along which a set's ranks negotiate: rank 0 is the root, and no rank has more than four children.
#pragma once

#include <algorithm>

namespace kolo::detail {

inline constexpr int kTreeArity = 4;

inline int parent_of(int rank) { return (rank - 1) / kTreeArity; }
inline int first_child_of(int rank) { return rank * kTreeArity + 1; }
inline int children_of(int rank, int ranks) {
  return std::clamp(ranks - first_child_of(rank), 0, kTreeArity);
}

/// `function` of each rank at or below `rank`; `rank` itself is the lowest of them.
template <typename Function>
void for_each_below(int rank, int ranks, const Function& function) {
  function(rank);
  for (int child = 0; child < children_of(rank, ranks); ++child)
    for_each_below(first_child_of(rank) + child, ranks, function);
}

}  // namespace kolo::detail
