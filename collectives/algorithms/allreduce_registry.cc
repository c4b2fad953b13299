#include <kolo/collectives/algorithms/allreduce_registry.h>

#include <algorithm>
#include <map>

#include <kolo/collectives/algorithms/stages.h>
#include <kolo/core/base/error.h>

namespace kolo {
namespace {

std::map<std::string, AllreduceFactory>& registry() {
  static std::map<std::string, AllreduceFactory> factories;
  return factories;
}

}  // namespace

RegisterAllreduce::RegisterAllreduce(const std::string& name, AllreduceFactory make) {
  if (!registry().emplace(name, make).second)
    throw InternalError("allreduce algorithm \"{}\" is registered twice", name);
}

AllreduceFactory allreduce_factory(const std::string& name) {
  const auto found = registry().find(name);
  return found == registry().end() ? nullptr : found->second;
}

std::shared_ptr<Collective> make_allreduce(const std::string& name, const AlgorithmContext& context,
                                           const TypedBuffer& buffer, ReduceOp op) {
  const AllreduceFactory make = allreduce_factory(name);
  if (make == nullptr) throw InternalError("there is no allreduce algorithm \"{}\"", name);
  return widened_where(context.f32_wire, buffer,
                       [&](const TypedBuffer& sent) { return make(context, sent, op); });
}

std::vector<std::string> allreduce_names() {
  // Not over messages, and made by MpiCommunicator: a call of MPI's own, and the node's.
  std::vector<std::string> names = {"mpi", "shared_memory"};
  for (const auto& [name, make] : registry()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace kolo
