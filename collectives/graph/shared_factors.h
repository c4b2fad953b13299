// Gradients of dense layers whose factors ranks read of each other (schedule/factors.h), in a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/graph/node.h>
#include <kolo/core/kernels/cpu/in_place_updates.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo::detail {

/// Of each gradient of a GroupAllReduce node, in the backward order: whether the graph makes it as a product
/// xᵀ · dy of few rows, and no op but updates reads what it is reduced to.
std::vector<bool> products_of(const Node& group);

/// What a step's nodes know of one gradient [inputs, outputs].
struct SharedFactors {
  std::shared_ptr<Schedule> schedule;
  FactorsSlot* slot = nullptr;  // of the schedule
  OwnFactors own;
  std::int64_t inputs = 0, outputs = 0;
  /// Once the ranks have met: their factors, in their order; none: the gradient is made by this rank alone.
  std::vector<const std::byte*> of_ranks = {};

  GradientFactors of(int rank) const;
};

/// The step's part in it, where the schedule may share the gradient's factors. `product` makes the gradient
/// in its bucket. wanted: the update can do with all ranks' factors, or parts of the gradient, what it does
/// with the gradient. Node numbers stay. Returns nullptr where this rank wants none.
std::shared_ptr<SharedFactors> share_factors(StepGraph& graph, const std::shared_ptr<Schedule>& schedule,
                                             FactorsSlot& slot, int product, bool wanted,
                                             const std::string& device);
/// Slots have their turn one after the other: nodes that submit one come behind all that submissions of
/// earlier slots wait for. Or memory that one holds could be what another is computed in.
void order_by_slots(StepGraph& graph, const std::shared_ptr<Schedule>& schedule, const std::string& device);

}  // namespace kolo::detail
