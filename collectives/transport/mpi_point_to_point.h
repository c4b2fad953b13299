// Messages between two ranks over MPI.
#pragma once

#include <vector>

#include <kolo/collectives/transport/mpi_handles.h>
#include <kolo/collectives/transport/point_to_point.h>

namespace kolo::detail {

/// `comm` outlives it.
class MpiPointToPoint final : public PointToPoint {
 public:
  explicit MpiPointToPoint(MPI_Comm comm);
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Request send(int to, std::span<const std::byte> bytes) override;
  Request receive(int from, std::span<std::byte> bytes) override;
  bool test(Request request) override;

 private:
  Request free_slot();

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<MPI_Request> requests_;
  std::vector<Request> free_;
};

}  // namespace kolo::detail
