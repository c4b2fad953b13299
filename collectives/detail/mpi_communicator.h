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
  /// topology: of comm's ranks. allreduce: "auto", "mpi" or a registered algorithm's name.
  MpiCommunicator(MpiComm comm, Topology topology, std::string allreduce, std::int64_t chunk_bytes);

  int rank() const override { return network_.rank(); }
  int size() const override { return network_.size(); }
  const Topology& topology() const override { return topology_; }
  /// For messages of other kinds between two of its operations.
  MPI_Comm comm() const { return comm_.get(); }
  std::shared_ptr<Collective> broadcast(std::span<std::byte> bytes, int root) override;
  std::shared_ptr<Collective> allgather(std::span<const std::span<std::byte>> blocks) override;
  std::shared_ptr<Collective> alltoall(std::span<const std::span<const std::byte>> out,
                                       std::span<const std::span<std::byte>> in) override;
  std::shared_ptr<Collective> gather(std::span<const std::byte> own,
                                     std::span<const std::span<std::byte>> blocks, int root) override;
  std::shared_ptr<Collective> scatter(std::span<const std::span<const std::byte>> blocks,
                                      std::span<std::byte> own, int root) override;
  std::shared_ptr<Collective> barrier() override;
  std::shared_ptr<Communicator> duplicate() override;
  std::shared_ptr<Communicator> subset(std::span<const int> members, int tag) override;

 protected:
  std::shared_ptr<Collective> make_allreduce(const TypedBuffer& buffer, ReduceOp op) override;
  std::shared_ptr<Collective> make_reduce_scatter(const TypedBuffer& buffer,
                                                  std::span<const std::int64_t> counts, ReduceOp op) override;

 private:
  void check_root(int root) const;

  MpiComm comm_;
  Topology topology_;
  MpiPointToPoint network_;
  std::string allreduce_;
  std::int64_t chunk_bytes_;
};

}  // namespace kolo::detail
