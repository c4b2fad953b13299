#include <kolo/collectives/transport/mpi_handles.h>

#include <string>

#include <kolo/core/base/error.h>

namespace kolo::detail {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw UnavailableError("{}: {}", call, std::string(text, length));
}

bool mpi_is_running() {
  int started = 0, finished = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&finished);
  return started != 0 && finished == 0;
}

MpiComm MpiComm::adopt(MPI_Comm comm) {
  MpiComm owner(comm);
  if (comm != MPI_COMM_NULL)
    check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return owner;
}

MpiComm MpiComm::duplicate(MPI_Comm source) {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(source, &copy), "MPI_Comm_dup");
  return adopt(copy);
}

MpiComm::~MpiComm() {
  if (comm_ != MPI_COMM_NULL && mpi_is_running()) MPI_Comm_free(&comm_);
}

}  // namespace kolo::detail
