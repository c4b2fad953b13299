// A client's graph as its master keeps it.
#pragma once

#include <string>

#include <kolo/core/graph/graph_def.h>

namespace kolo::detail {

/// Adds the nodes under their own names; their inputs may be nodes that the graph has already. Checks
/// everything before it adds anything. Throws as import_graph_def, InvalidArgumentError for names that exist,
/// and UnimplementedError `<node> (<Op>) reduces over MPI ranks and cannot run in a session on <target>`.
void extend_graph(Graph& graph, const GraphDef& nodes, const std::string& target);

}  // namespace kolo::detail
