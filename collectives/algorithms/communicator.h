// The collectives of one set of ranks. Those over MPI and shared memory are made by init; NCCL's stand behind
// the same face.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/reduce/reduction.h>
#include <kolo/collectives/transport/topology.h>

namespace kolo {

/// Whose elements count in a reduction. The others' are neutral: zeros, for a sum.
struct Contributors {
  int count = 0;    // what averages divide by, the same on all ranks; 0: all ranks
  bool own = true;  // this rank is one of them
};

/// Each call makes an operation; it is started and advanced by the thread that owns the communicator. All
/// ranks start the same operations in the same order, one after the other. Results are the same bits on all
/// ranks. Ranks are those of the set, 0 … size() − 1. Zero elements are legal everywhere. Memory that is
/// given must live until the operation has finished.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const Topology& topology() const = 0;

  /// In place. All ranks give the same dtype, number of elements and reduction. Throws InvalidArgumentError
  /// as check_reducible does. One rank: the scales alone. tensor_elements: of the tensors that fill the
  /// buffer, one behind the other, of which Adasum takes each by itself; empty: it is one tensor.
  /// Cost: see the algorithm.
  std::shared_ptr<Collective> allreduce(const TypedBuffer& buffer, const Reduction& reduction,
                                        std::span<const std::int64_t> tensor_elements = {},
                                        const Contributors& contributors = {});
  /// In place: afterwards this rank's block holds the reduced elements, the others' are undefined. counts[r]:
  /// elements of rank r's block, the same list on all ranks; the blocks follow each other and fill the
  /// buffer. Any op but adasum.
  std::shared_ptr<Collective> reduce_scatter(const TypedBuffer& buffer, std::span<const std::int64_t> counts,
                                             const Reduction& reduction);
  /// root's bytes on every rank. All ranks give the same number of bytes.
  virtual std::shared_ptr<Collective> broadcast(std::span<std::byte> bytes, int root) = 0;
  /// In place: blocks[r] holds rank r's bytes afterwards, on every rank; before, this rank has filled its
  /// own. The blocks may differ in size, not from rank to rank.
  virtual std::shared_ptr<Collective> allgather(std::span<const std::span<std::byte>> blocks) = 0;
  /// out[r] goes to rank r, in[r] comes from it: size() of each.
  virtual std::shared_ptr<Collective> alltoall(std::span<const std::span<const std::byte>> out,
                                               std::span<const std::span<std::byte>> in) = 0;
  /// own of rank r arrives in root's blocks[r]. blocks: size() of them at the root, none elsewhere.
  virtual std::shared_ptr<Collective> gather(std::span<const std::byte> own,
                                             std::span<const std::span<std::byte>> blocks, int root) = 0;
  /// root's blocks[r] arrives in own of rank r. blocks: size() of them at the root, none elsewhere.
  virtual std::shared_ptr<Collective> scatter(std::span<const std::span<const std::byte>> blocks,
                                              std::span<std::byte> own, int root) = 0;
  /// Finishes when every rank has started it.
  virtual std::shared_ptr<Collective> barrier() = 0;

  /// The same ranks, whose messages never meet this communicator's. Collective; all ranks must be about to
  /// call it, since it waits for them.
  virtual std::shared_ptr<Communicator> duplicate() = 0;
  /// Of `members` alone, in their order; each of them calls it with the same list (and tag, where a rank is
  /// in several sets that are made at the same time) and waits for the others; nobody else does.
  virtual std::shared_ptr<Communicator> subset(std::span<const int> members, int tag) = 0;

 protected:
  // Checked already, without scales and on more than one rank.
  // op: not adasum.
  virtual std::shared_ptr<Collective> make_allreduce(const TypedBuffer& buffer, ReduceOp op,
                                                     int average_over) = 0;
  virtual std::shared_ptr<Collective> make_adasum(const TypedBuffer& buffer,
                                                  std::span<const std::int64_t> tensor_elements,
                                                  const Contributors& contributors) = 0;
  virtual std::shared_ptr<Collective> make_reduce_scatter(const TypedBuffer& buffer,
                                                          std::span<const std::int64_t> counts,
                                                          ReduceOp op) = 0;
};

}  // namespace kolo
