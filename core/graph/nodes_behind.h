// The nodes that some values of a graph are computed from.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include <kolo/core/graph/output.h>

namespace kolo::detail {

/// The nodes of `outputs`, and those that they take values from, by their ids, which are a topological order.
/// also: what a node brings along besides; {} for values alone. is_fed: of values whose nodes are not needed;
/// {} for none.
std::map<int, const Node*> nodes_behind(
    const Outputs& outputs, const std::function<std::vector<const Node*>(const Node& node)>& also = {},
    const std::function<bool(const Output& value)>& is_fed = {});

/// All nodes of a run for `targets`: what they take values from, and what they wait for.
std::map<int, const Node*> nodes_of_run(const std::vector<const Node*>& targets,
                                        const std::function<bool(const Output& value)>& is_fed = {});

}  // namespace kolo::detail
