// The memory of the ranks of this node, found over MPI.
#pragma once

#include <mpi.h>

#include <kolo/collectives/transport/node_memory.h>
#include <kolo/collectives/transport/topology.h>

namespace kolo::detail {

/// The ranks of this rank's node, in the order of topology.ranks_of(); empty, on all of them, where it is
/// alone or where one of them cannot reach another's memory: then there is one warning that says why.
/// Collective over `comm`, whose topology that is.
NodeView connect_node_memory(MPI_Comm comm, const Topology& topology);

}  // namespace kolo::detail
