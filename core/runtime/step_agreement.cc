#include <kolo/core/runtime/step_agreement.h>

#include <map>

namespace kolo {
namespace {

std::map<std::string, AgreementFactory>& registry() {
  static std::map<std::string, AgreementFactory> factories;
  return factories;
}

}  // namespace

RegisterAgreement::RegisterAgreement(const std::string& op, AgreementFactory make) { registry()[op] = make; }

AgreementFactory agreement_factory(const std::string& op) {
  const auto found = registry().find(op);
  return found == registry().end() ? nullptr : found->second;
}

}  // namespace kolo
