// The allreduce algorithms of this build, by name, and what they are given besides the elements.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/algorithms/collective.h>
#include <kolo/collectives/reduce/reduction.h>
#include <kolo/collectives/transport/point_to_point.h>
#include <kolo/collectives/transport/topology.h>
#include <kolo/core/base/source_line.h>

namespace kolo {

/// The two collectives of a node that a hierarchical algorithm is made of. Ranks are local ranks, in the
/// order of Topology::ranks_of. All ranks of the node start the same operations in the same order, one after
/// the other; they are made before the first is started, and may be started again.
/// The thread that starts them.
class LocalCollectives {
 public:
  virtual ~LocalCollectives() = default;
  /// As Communicator::reduce_scatter; not adasum. divisor: what average divides by.
  virtual std::shared_ptr<Collective> reduce_scatter(const TypedBuffer& buffer,
                                                     std::span<const std::int64_t> counts, ReduceOp op,
                                                     double divisor) = 0;
  /// As Communicator::allgather.
  virtual std::shared_ptr<Collective> allgather(std::span<const std::span<std::byte>> blocks) = 0;
};

/// Small, and copied by operations; what it refers to outlives them.
struct AlgorithmContext {
  PointToPoint& network;
  const Topology& topology;                            // of the network's ranks
  std::int64_t chunk_bytes = std::int64_t{256} << 10;  // of one message, where an array is sent in several
  double average_over = 0;                             // what average divides by; 0: the number of ranks
  LocalCollectives* local = nullptr;                   // nullptr: over the network
  bool f32_wire = false;                               // 16-bit floats travel in f32, and are rounded once

  double divisor() const { return average_over > 0 ? average_over : network.size(); }
};

/// Makes an operation that reduces `buffer` in place over the ranks of the context's network.
using AllreduceFactory = std::shared_ptr<Collective> (*)(const AlgorithmContext& context,
                                                         const TypedBuffer& buffer, ReduceOp op);

/// A namespace-scope constant of an algorithm's file. A second one of a name is an InternalError at start-up.
struct RegisterAllreduce {
  RegisterAllreduce(const std::string& name, AllreduceFactory make, SourceLine place = SourceLine::here());
};

/// nullptr if there is none of this name among the algorithms over point-to-point messages.
AllreduceFactory allreduce_factory(const std::string& name);
/// The operation that the named algorithm makes of it. Throws InternalError for an unknown name.
std::shared_ptr<Collective> make_allreduce(const std::string& name, const AlgorithmContext& context,
                                           const TypedBuffer& buffer, ReduceOp op);
/// What KOLO_ALLREDUCE may name besides "auto": the registered ones, "mpi" and "shared_memory", sorted.
std::vector<std::string> allreduce_names();

}  // namespace kolo
