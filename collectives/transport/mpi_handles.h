// MPI's codes as exceptions, and its handles as objects that free themselves.
#pragma once

#include <mpi.h>

#include <utility>

namespace kolo::detail {

/// Throws UnavailableError `<call>: <MPI's text>` unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);
/// Between MPI_Init and MPI_Finalize.
bool mpi_is_running();

/// A communicator of kolo's own: errors on it return, and its messages meet nobody else's.
class MpiComm {
 public:
  MpiComm() = default;
  /// Takes over `comm`, which nobody else frees.
  static MpiComm adopt(MPI_Comm comm);
  /// Collective.
  static MpiComm duplicate(MPI_Comm source);
  MpiComm(MpiComm&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  MpiComm& operator=(MpiComm&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  ~MpiComm();
  MPI_Comm get() const { return comm_; }

 private:
  explicit MpiComm(MPI_Comm comm) : comm_(comm) {}
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace kolo::detail
