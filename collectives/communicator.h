// The collectives of one set of ranks. MPI's is made by init; shared memory and NCCL stand behind the same
// face.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <kolo/collectives/collective.h>
#include <kolo/collectives/reduce_op.h>

namespace kolo {

/// Each call makes an operation; it is started and advanced by the thread that owns the communicator. All
/// ranks start the same operations in the same order. Results are the same bits on all ranks.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// In place. All ranks give the same dtype, number of elements and op; none or one element is legal.
  /// Throws InvalidArgumentError where `op` is not defined for the type. Cost: see the algorithm.
  virtual std::shared_ptr<Collective> allreduce(const TypedBuffer& buffer, ReduceOp op) = 0;
  /// root's bytes on every rank. All ranks give the same number of bytes.
  virtual std::shared_ptr<Collective> broadcast(std::span<std::byte> bytes, int root) = 0;
  /// In place: blocks[r] holds rank r's bytes afterwards, on every rank; before, this rank has filled its
  /// own. The blocks may differ in size, not from rank to rank.
  virtual std::shared_ptr<Collective> allgather(std::span<const std::span<std::byte>> blocks) = 0;
  /// Finishes when every rank has started it.
  virtual std::shared_ptr<Collective> barrier() = 0;

  /// The same ranks, whose messages never meet this communicator's. Collective; all ranks must be about to
  /// call it, since it waits for them.
  virtual std::shared_ptr<Communicator> duplicate() = 0;
};

}  // namespace kolo
