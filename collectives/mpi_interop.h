// For programs that use MPI themselves. The only public header that knows mpi.h.
#pragma once

#include <mpi.h>

#include <span>

namespace kolo {

/// init() on the ranks of `comm`, which kolo duplicates; all of them call it. MPI must be running, with
/// MPI_THREAD_SERIALIZED (the program then makes no MPI call while kolo works) or MPI_THREAD_MULTIPLE, and is
/// left running by shutdown().
void init(MPI_Comm comm);

/// init() on a sub-set of the launcher's ranks, which get new numbers in the order of the list. All processes
/// of the job call it with the same list; one that is not in the list becomes the only rank of its own.
/// Throws InvalidArgumentError for a rank that is not there or stands twice.
void init(std::span<const int> ranks);

}  // namespace kolo
