#include <kolo/collectives/algorithms/allreduce_registry.h>

#include <algorithm>
#include <map>

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

std::vector<std::string> allreduce_names() {
  std::vector<std::string> names = {"mpi"};  // a call of MPI's own, made by MpiCommunicator
  for (const auto& [name, make] : registry()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace kolo
