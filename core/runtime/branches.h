// Which nodes of a step happen: those of branches that are not taken are skipped, and so is what waits for
// them.
#pragma once

#include <kolo/core/runtime/plan.h>

namespace kolo {

/// Whether the node at position `index`, which is_conditional(), happens in this run; notes it in its
/// context. To be asked when all that it waits for is done.
inline bool happens(const PlanNode& node, int index, Frame& frame) {
  KernelContext& context = frame.contexts[index];
  context.skipped = false;
  for (const int before : node.skipped_with) context.skipped |= frame.contexts[before].skipped;
  bool any = node.joined.empty();
  for (std::size_t i = 0; i < node.joined.size(); ++i)
    any |= context.happened[i] = !frame.contexts[node.joined[i]].skipped;
  context.skipped |= !any;
  return !context.skipped;
}

}  // namespace kolo
