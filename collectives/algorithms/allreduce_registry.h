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
/// The operation that the named algorithm makes of it. Throws InternalError for an unknown name.
std::shared_ptr<Collective> make_allreduce(const std::string& name, const AlgorithmContext& context,
                                           const TypedBuffer& buffer, ReduceOp op);
/// What KOLO_ALLREDUCE may name besides "auto": the registered ones, "mpi" and "shared_memory", sorted.
std::vector<std::string> allreduce_names();

}  // namespace kolo
