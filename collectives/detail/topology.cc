#include <kolo/collectives/detail/topology.h>

#include <map>

namespace kolo::detail {

ProcessInfo locate(int rank, std::span<const int> leaders) {
  ProcessInfo info;
  info.rank = rank;
  info.size = static_cast<int>(leaders.size());
  std::map<int, int> ranks_on_host;  // by leader
  for (int r = 0; r < info.size; ++r) {
    const int place = ranks_on_host[leaders[r]]++;
    if (r == rank) info.local_rank = place;
  }
  const int own_leader = leaders[rank];
  info.local_size = ranks_on_host[own_leader];
  info.node_count = static_cast<int>(ranks_on_host.size());
  info.cross_size = 0;
  for (const auto& [leader, ranks] : ranks_on_host) {
    info.homogeneous = info.homogeneous && ranks == info.local_size;
    if (ranks <= info.local_rank) continue;
    if (leader == own_leader) info.cross_rank = info.cross_size;
    ++info.cross_size;
  }
  return info;
}

}  // namespace kolo::detail
