// What a network is made of: all that some of its values are computed from.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include <kolo/core/graph/output.h>

namespace kolo::detail {

/// The nodes of `outputs`, and those that they take values from, by their ids, which are a topological order.
/// also: what a node brings along besides; {} for values alone.
std::map<int, const Node*> nodes_behind(
    const Outputs& outputs, const std::function<std::vector<const Node*>(const Node& node)>& also = {});

}  // namespace kolo::detail
