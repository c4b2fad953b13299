// The end of MPI in a process whose ranks have all come to it.
#pragma once

#include <functional>

namespace kolo::detail {

/// MPI_Finalize. MPICH 4.0 over UCX's tcp can hang there: a rank that comes after another closes a
/// connection, for which it needs an answer, and the other one waits for the launcher by now and answers
/// nobody. So where that MPI does not return within ten seconds, `without_mpi`, if there is one, is called
/// with a warning, on another thread, and is to end the process.
void finalize_mpi(std::function<void()> without_mpi);

}  // namespace kolo::detail
