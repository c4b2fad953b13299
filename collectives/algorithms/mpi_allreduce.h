// MPI's own allreduce as an operation.
#pragma once

#include <memory>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/reduce/reduce_op.h>
#include <kolo/collectives/transport/mpi_handles.h>

namespace kolo::detail {

/// MPI_Iallreduce, in place, with kolo's element-wise reductions (MPI has no rule for NaN, and no 16-bit
/// floats). The nonblocking form: within MPI_Allreduce no thread could see that a rank never comes. A barrier
/// goes before it: MPI moves the bytes only while it is polled and does not tell when it does, so from then
/// on, and not while a rank is still to come, the polling has to be steady.
std::shared_ptr<Collective> mpi_allreduce(MPI_Comm comm, const TypedBuffer& buffer, ReduceOp op);

}  // namespace kolo::detail
