#include <kolo/collectives/transport/mpi_point_to_point.h>

namespace kolo::detail {

MpiPointToPoint::MpiPointToPoint(MPI_Comm comm) : comm_(comm) {
  check_mpi(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
}

PointToPoint::Request MpiPointToPoint::free_slot() {
  if (free_.empty()) {
    requests_.push_back(MPI_REQUEST_NULL);
    return static_cast<Request>(requests_.size()) - 1;
  }
  const Request slot = free_.back();
  free_.pop_back();
  return slot;
}

PointToPoint::Request MpiPointToPoint::send(int to, std::span<const std::byte> bytes) {
  const Request slot = free_slot();
  check_mpi(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, 0, comm_, &requests_[slot]),
            "MPI_Isend");
  return slot;
}

PointToPoint::Request MpiPointToPoint::receive(int from, std::span<std::byte> bytes) {
  const Request slot = free_slot();
  check_mpi(
      MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, from, 0, comm_, &requests_[slot]),
      "MPI_Irecv");
  return slot;
}

bool MpiPointToPoint::test(Request request) {
  int done = 0;
  check_mpi(MPI_Test(&requests_[request], &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done != 0) free_.push_back(request);
  return done != 0;
}

}  // namespace kolo::detail
