#include <kolo/collectives/algorithms/allreduce_registry.h>

#include <algorithm>

#include <kolo/collectives/algorithms/stages.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/registry.h>

namespace kolo {
namespace {

Registry<AllreduceFactory>& registry() {
  static Registry<AllreduceFactory> factories("allreduce algorithm");
  return factories;
}

}  // namespace

RegisterAllreduce::RegisterAllreduce(const std::string& name, AllreduceFactory make, SourceLine place) {
  registry().add(name, make, place);
}

AllreduceFactory allreduce_factory(const std::string& name) {
  const AllreduceFactory* const found = registry().find(name);
  return found == nullptr ? nullptr : *found;
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
  for (const std::string& name : registry().names()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace kolo
