// The allreduce algorithms of this build, by name. A new one is one file that registers itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kolo/collectives/algorithms/algorithm_context.h>

namespace kolo {

/// Makes an operation that reduces `buffer` in place over the ranks of the context's network.
using AllreduceFactory = std::shared_ptr<Collective> (*)(const AlgorithmContext& context,
                                                         const TypedBuffer& buffer, ReduceOp op);

/// A namespace-scope constant of an algorithm's file. A second one of a name is an InternalError at start-up.
struct RegisterAllreduce {
  RegisterAllreduce(const std::string& name, AllreduceFactory make);
};

/// nullptr if there is none of this name among the algorithms over point-to-point messages.
AllreduceFactory allreduce_factory(const std::string& name);
/// What KOLO_ALLREDUCE may name besides "auto": the registered ones and "mpi", sorted.
std::vector<std::string> allreduce_names();

}  // namespace kolo
