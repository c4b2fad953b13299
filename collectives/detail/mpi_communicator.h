// The collectives over MPI: kolo's own algorithms on point-to-point messages, and MPI's.
#pragma once

#include <memory>
#include <string>

#include <kolo/collectives/communicator.h>
#include <kolo/collectives/detail/mpi_handles.h>
#include <kolo/collectives/detail/mpi_point_to_point.h>

namespace kolo::detail {

/// Used by one thread, which also destroys it (or MPI has been finalised by then). Outlives its operations.
class MpiCommunicator final : public Communicator {
 public:
  /// allreduce: "auto", "mpi" or a registered algorithm's name.
  MpiCommunicator(MpiComm comm, std::string allreduce, std::int64_t chunk_bytes);

  int rank() const override { return network_.rank(); }
  int size() const override { return network_.size(); }
  std::shared_ptr<Collective> allreduce(const TypedBuffer& buffer, ReduceOp op) override;
  std::shared_ptr<Collective> broadcast(std::span<std::byte> bytes, int root) override;
  std::shared_ptr<Collective> allgather(std::span<const std::span<std::byte>> blocks) override;
  std::shared_ptr<Collective> barrier() override;
  std::shared_ptr<Communicator> duplicate() override;

 private:
  MpiComm comm_;
  MpiPointToPoint network_;
  std::string allreduce_;
  std::int64_t chunk_bytes_;
};

}  // namespace kolo::detail
