#include <kolo/collectives/transport/topology.h>

#include <algorithm>
#include <map>

namespace kolo {

Topology::Topology(std::span<const int> leaders) : node_of_(leaders.size()), local_rank_(leaders.size()) {
  std::map<int, int> node_by_leader;
  for (std::size_t rank = 0; rank < leaders.size(); ++rank) {
    const auto [found, is_new] = node_by_leader.emplace(leaders[rank], nodes());
    if (is_new) ranks_of_.emplace_back();
    auto& ranks = ranks_of_[found->second];
    node_of_[rank] = found->second;
    local_rank_[rank] = static_cast<int>(ranks.size());
    ranks.push_back(static_cast<int>(rank));
  }
}

Topology Topology::one_node(int ranks) { return Topology(std::vector<int>(ranks, 0)); }

bool Topology::is_homogeneous() const {
  return std::all_of(ranks_of_.begin(), ranks_of_.end(),
                     [&](const auto& ranks) { return ranks.size() == ranks_of_[0].size(); });
}

Topology Topology::of(std::span<const int> members) const {
  std::vector<int> leaders;
  for (const int rank : members) leaders.push_back(node_of_.at(rank));
  return Topology(leaders);
}

ProcessInfo locate(int rank, const Topology& topology) {
  ProcessInfo info;
  info.rank = rank;
  info.size = topology.ranks();
  info.local_rank = topology.local_rank(rank);
  const int node = topology.node_of(rank);
  info.local_size = static_cast<int>(topology.ranks_of(node).size());
  info.node_count = topology.nodes();
  info.homogeneous = topology.is_homogeneous();
  info.cross_size = 0;
  for (int n = 0; n < topology.nodes(); ++n) {
    if (static_cast<int>(topology.ranks_of(n).size()) <= info.local_rank) continue;
    if (n == node) info.cross_rank = info.cross_size;
    ++info.cross_size;
  }
  return info;
}

}  // namespace kolo
