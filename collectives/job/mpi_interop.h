// For programs that use MPI themselves. The only public header that knows mpi.h.
#pragma once

#include <mpi.h>

#include <optional>
#include <span>

#include <kolo/collectives/engine/process_set.h>

namespace kolo {

/// init() on the ranks of `comm`, which kolo duplicates; all of them call it. MPI must be running, with
/// MPI_THREAD_SERIALIZED (the program then makes no MPI call while kolo works) or MPI_THREAD_MULTIPLE, and is
/// left running by shutdown(). With less, as MPI_Init() starts it: FailedPreconditionError.
void init(MPI_Comm comm);

/// init() on a sub-set of the launcher's ranks, which get new numbers in the order of the list. All processes
/// of the job call it with the same list; one that is not in the list becomes the only rank of its own.
/// Throws InvalidArgumentError for a rank that is not there or stands twice.
void init(std::span<const int> ranks);

/// The process set of the ranks of `comm`, in its order. Collective over all of kolo's ranks: each gives a
/// communicator that it is in, as MPI_Comm_split makes them, or MPI_COMM_NULL, which brings nothing. Throws
/// InvalidArgumentError for a rank of `comm` that kolo does not know, and where nobody gives any.
std::optional<ProcessSet> process_set_of(MPI_Comm comm);

}  // namespace kolo
