#include <kolo/core/runtime/remote_session.h>

#include <fmt/format.h>

#include <string_view>

#include <kolo/core/base/error.h>
#include <kolo/core/base/registry.h>

namespace kolo::detail {
namespace {

Registry<RemoteSessionFactory>& factories() {
  static Registry<RemoteSessionFactory> factories("session factory");
  return factories;
}

}  // namespace

RegisterRemoteSessions::RegisterRemoteSessions(const std::string& prefix, RemoteSessionFactory factory,
                                               SourceLine place) {
  factories().add(prefix, std::move(factory), place);
}

const RemoteSessionFactory& remote_session_factory(const std::string& target) {
  for (const std::string& prefix : factories().names())
    if (target.starts_with(prefix)) return *factories().find(prefix);
  throw NotFoundError(
      "No session factory registered for the given session options: {{target: \"{}\"}}. Targets are \"\", "
      "this "
      "process, and \"grpc://host:port\", a server{}",
      target, target.starts_with("grpc://") ? " (link kolo::cluster)" : "");
}

}  // namespace kolo::detail
