// The tree along which ranks tell each other what all are to know: rank 0 is its root, and nobody has more
// than four children. A rank's ancestors have lower numbers than it has.
#pragma once

#include <algorithm>
#include <vector>

namespace kolo::detail {

inline constexpr int kTreeArity = 4;

/// Not of rank 0.
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

/// How many levels of ranks there are below this one.
inline int height_of(int rank, int ranks) {
  int levels = 0;
  for (; children_of(rank, ranks) > 0; rank = first_child_of(rank)) ++levels;
  return levels;
}

inline std::vector<int> children_list(int rank, int ranks) {
  std::vector<int> list(static_cast<std::size_t>(children_of(rank, ranks)));
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = first_child_of(rank) + static_cast<int>(i);
  return list;
}

/// Parent and children.
inline std::vector<int> neighbours_of(int rank, int ranks) {
  std::vector<int> list = children_list(rank, ranks);
  if (rank != 0) list.insert(list.begin(), parent_of(rank));
  return list;
}

}  // namespace kolo::detail
