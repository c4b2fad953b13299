// The collectives over MPI: kolo's own algorithms on point-to-point messages, and MPI's.
#pragma once

#include <memory>
#include <string>

#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/algorithms/communicator.h>
#include <kolo/collectives/algorithms/cost_model.h>
#include <kolo/collectives/algorithms/shared_collectives.h>
#include <kolo/collectives/reduce/reduction.h>
#include <kolo/collectives/transport/mpi.h>
#include <kolo/collectives/transport/node_memory.h>

namespace kolo::detail {

/// MPI_Iallreduce, in place, with kolo's element-wise reductions (MPI has no rule for NaN, and no 16-bit
/// floats). The nonblocking form: within MPI_Allreduce no thread could see that a rank never comes. A barrier
/// goes before it: MPI moves the bytes only while it is polled and does not tell when it does, so from then
/// on, and not while a rank is still to come, the polling has to be steady.
/// divisor: what average divides by.
std::shared_ptr<Collective> mpi_allreduce(MPI_Comm comm, const TypedBuffer& buffer, ReduceOp op, int divisor);

/// Where all ranks share memory, that carries the operations and the messages; MPI then only makes
/// communicators. Used by one thread, which also destroys it (or MPI has been finalised by then), but for the
/// operations that need no communication thread. Outlives its operations.
class MpiCommunicator final : public Communicator {
 public:
  /// topology: of comm's ranks. allreduce: one of allreduce_names() or "auto". node: the memory of the ranks
  /// of this rank's node, in the order of topology.ranks_of(); empty where it is not shared, on all of them.
  /// Collective.
  MpiCommunicator(MpiComm comm, Topology topology, std::string allreduce, std::int64_t chunk_bytes,
                  NodeView node = {});

  int rank() const override { return mpi_network_.rank(); }
  int size() const override { return mpi_network_.size(); }
  const Topology& topology() const override { return topology_; }
  /// What the choice of algorithms goes by, and whether 16-bit floats travel in f32; duplicates and subsets
  /// made later have it too.
  void tune(const CostModel& costs, bool f32_wire) {
    costs_ = costs;
    f32_wire_ = f32_wire;
  }
  /// MPI's messages, for use between two of its operations.
  PointToPoint& messages() { return mpi_network_; }
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
  std::shared_ptr<Collective> make_allreduce(const TypedBuffer& buffer, ReduceOp op,
                                             int average_over) override;
  std::shared_ptr<Collective> make_reduce_scatter(const TypedBuffer& buffer,
                                                  std::span<const std::int64_t> counts, ReduceOp op) override;

 private:
  void check_root(int root) const;
  std::unique_ptr<NodeCollectives> connect_node() const;
  // Of all ranks, or nullptr.
  NodeCollectives* shared() const { return topology_.nodes() == 1 ? node_.get() : nullptr; }
  // An operation over network().
  std::shared_ptr<Collective> carried(std::shared_ptr<Collective> operation) const {
    return shared() != nullptr ? shared()->carried(std::move(operation)) : operation;
  }
  PointToPoint& network() { return shared() != nullptr ? shared()->network() : mpi_network_; }
  std::shared_ptr<Collective> make_adasum(const TypedBuffer& buffer,
                                          std::span<const std::int64_t> tensor_elements,
                                          const Contributors& contributors) override;
  // average_over: 0: all ranks.
  AlgorithmContext context(int average_over = 0) {
    return {.network = network(),
            .topology = topology_,
            .chunk_bytes = chunk_bytes_,
            .average_over = static_cast<double>(average_over),
            .local = node_.get(),
            .f32_wire = f32_wire_};
  }

  MpiComm comm_;
  Topology topology_;
  MpiPointToPoint mpi_network_;
  NodeView view_;
  std::unique_ptr<NodeCollectives> node_;  // of the ranks of this node; nullptr where they share no memory
  std::string allreduce_;
  std::int64_t chunk_bytes_;
  CostModel costs_;
  bool f32_wire_ = false;
};

}  // namespace kolo::detail
