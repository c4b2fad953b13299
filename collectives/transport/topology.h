// Which ranks share a machine, and so its memory.
#pragma once

#include <span>
#include <vector>

#include <kolo/core/base/process.h>

namespace kolo {

/// The nodes of a set of ranks, numbered by their lowest ranks. A value: any thread reads it.
class Topology {
 public:
  /// leaders[r]: the lowest rank among those that share memory with rank r.
  explicit Topology(std::span<const int> leaders);
  /// Every rank on one node.
  static Topology one_node(int ranks);

  int ranks() const { return static_cast<int>(node_of_.size()); }
  int nodes() const { return static_cast<int>(ranks_of_.size()); }
  int node_of(int rank) const { return node_of_.at(rank); }
  /// Ascending.
  const std::vector<int>& ranks_of(int node) const { return ranks_of_.at(node); }
  /// The place of `rank` among ranks_of(node_of(rank)).
  int local_rank(int rank) const { return local_rank_.at(rank); }
  /// Every node has the same number of ranks.
  bool is_homogeneous() const;
  /// Of these ranks alone, which get the numbers 0, 1, … in the order of the list.
  Topology of(std::span<const int> members) const;

 private:
  std::vector<int> node_of_, local_rank_;   // by rank
  std::vector<std::vector<int>> ranks_of_;  // by node
};

/// What a process is to know of its place; the host name is left empty.
ProcessInfo locate(int rank, const Topology& topology);

}  // namespace kolo
