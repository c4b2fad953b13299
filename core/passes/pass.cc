#include <kolo/core/passes/pass.h>

#include <map>
#include <utility>

namespace kolo {
namespace {

std::map<std::string, Pass>& registry() {
  static std::map<std::string, Pass> passes;
  return passes;
}

}  // namespace

RegisterPass::RegisterPass(std::string name, Pass pass) { registry()[std::move(name)] = pass; }

std::vector<Pass> registered_passes() {
  std::vector<Pass> passes;
  for (const auto& [name, pass] : registry()) passes.push_back(pass);
  return passes;
}

}  // namespace kolo
