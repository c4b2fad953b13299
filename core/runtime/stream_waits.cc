#include <kolo/core/runtime/stream_waits.h>

#include <algorithm>
#include <boost/dynamic_bitset.hpp>
#include <set>

namespace kolo {

std::vector<StreamWaits> stream_waits(std::vector<OrderedNode>& nodes) {
  std::vector<boost::dynamic_bitset<>> earlier(nodes.size());  // all that must have ended, however indirectly
  std::vector<StreamWaits> waits(nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    OrderedNode& node = nodes[n];
    std::set<int> before;
    earlier[n].resize(nodes.size());
    for (const int b : node.before) {
      if (!nodes[b].is_name) before.insert(b), earlier[n].set(b);
      if (nodes[b].is_name || nodes[b].can_be_skipped)
        before.insert(nodes[b].before.begin(), nodes[b].before.end());
      earlier[n] |= earlier[b];
    }
    node.before.assign(before.begin(), before.end());
    if (node.stream == nullptr || node.is_name) continue;
    for (const int b : node.before) {
      const bool is_implied = std::any_of(node.before.begin(), node.before.end(), [&](int other) {
        return !nodes[other].can_be_skipped && earlier[other].test(b);
      });
      if (nodes[b].runs_ahead && nodes[b].stream != node.stream && !is_implied) waits[n].ends.push_back(b);
    }
    if (waits[n].ends.empty()) continue;
    for (std::size_t b = 0; b < n; ++b)
      if (nodes[b].is_fence && earlier[n].test(b)) waits[n].fences.push_back(static_cast<int>(b));
  }
  return waits;
}

}  // namespace kolo
