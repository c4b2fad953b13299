// What runs inside of a loop. A loop is one node of the graph; the nodes of its condition, its body and its
// gradient's body are in the same graph, and the loop's attributes name the tensors in which they begin and
// end.
#pragma once

#include <vector>

#include <kolo/core/graph/graph.h>

namespace kolo {

/// True for nodes that run other nodes of their graph.
bool is_loop(const Node& node);

/// The nodes that run when `loop` does, those of loops and branches in it included, in the order of creation.
/// Variables' storages that they use are among them. Empty for nodes that are no loop. Throws NotFoundError
/// where an attribute names a tensor that does not exist.
std::vector<const Node*> nodes_in_loop(const Node& loop);

}  // namespace kolo
