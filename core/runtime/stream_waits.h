// For which nodes of other streams a node has to wait: as few as keep the plan's order.
#pragma once

#include <vector>

namespace kolo {

class Stream;

/// A node of a plan, by position: what it comes behind stands before it.
struct OrderedNode {
  std::vector<int> before;         // by edges of any kind
  const Stream* stream = nullptr;  // that it stands in; nullptr: the host runs it
  bool runs_ahead = false;         // it is done, for the executor, once it stands there
  bool is_name = false;            // it runs nothing: who comes behind it comes behind what it comes behind
  bool is_fence = false;
  bool can_be_skipped = false;  // then who comes behind it comes behind what it comes behind, too
};

struct StreamWaits {
  std::vector<int> ends;    // of nodes of other streams, to be waited for in the node's own
  std::vector<int> fences;  // where there are such: the fences that are over when the node is put there
};

/// By position. Left out are nodes that come before another one that the node comes behind. Makes `before`
/// what it means: nodes that run something.
std::vector<StreamWaits> stream_waits(std::vector<OrderedNode>& nodes);

}  // namespace kolo
