#include <kolo/core/cluster/client/connect.h>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/credentials.h>
#include <kolo/core/cluster/master/masters.h>
#include <kolo/core/cluster/rpc/channel.h>
#include <kolo/core/cluster/task_address.h>

namespace kolo::detail {
namespace {

constexpr std::string_view kPrefix = "grpc://";

}  // namespace

ConnectedMaster connect_master(const std::string& target, const SessionConfig& config) {
  const std::string text = target.substr(kPrefix.size());
  const auto address = parse_task_address(text);
  if (!address || (address->path.empty() && address->port == 0))
    throw InvalidArgumentError("the target \"{}\" names no server; it must be grpc://host:port", target);
  const std::string canonical = address->to_string();
  if (!config.rpc_options.use_rpc_for_inprocess_master)
    if (auto master = find_master(std::string(kPrefix) + canonical)) return {std::move(master), true};
  Caller caller;
  caller.credentials = load_credentials({});
  return {std::make_shared<RemoteMaster>(make_channel(canonical, std::move(caller))), false};
}

}  // namespace kolo::detail
