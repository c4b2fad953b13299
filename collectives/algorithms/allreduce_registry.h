// The allreduce algorithms of this build, by name. A new one is one file that registers itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kolo/collectives/collective.h>
#include <kolo/collectives/point_to_point.h>
#include <kolo/collectives/reduce_op.h>

namespace kolo {

/// Makes an operation that reduces `buffer` in place over the ranks of `network`.
using AllreduceFactory = std::shared_ptr<Collective> (*)(PointToPoint& network, const TypedBuffer& buffer,
                                                         ReduceOp op, std::int64_t chunk_bytes);

/// A namespace-scope constant of an algorithm's file. A second one of a name is an InternalError at start-up.
struct RegisterAllreduce {
  RegisterAllreduce(const std::string& name, AllreduceFactory make);
};

/// nullptr if there is none of this name among the algorithms over point-to-point messages.
AllreduceFactory allreduce_factory(const std::string& name);
/// What KOLO_ALLREDUCE may name besides "auto": the registered ones and "mpi", sorted.
std::vector<std::string> allreduce_names();

}  // namespace kolo
