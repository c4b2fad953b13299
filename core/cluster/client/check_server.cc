#include <kolo/core/cluster/client/check_server.h>

#include <fmt/format.h>

#include <string_view>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/rpc/channel.h>
#include <kolo/core/cluster/task_address.h>

#include <kolo/core/cluster/rpc/messages_internal.h>

namespace kolo {

std::string check_server(const std::string& target, const ClusterCredentials& credentials,
                         std::chrono::milliseconds timeout) {
  constexpr std::string_view kPrefix = "grpc://";
  const auto address =
      detail::parse_task_address(target.starts_with(kPrefix) ? target.substr(kPrefix.size()) : target);
  if (!address || (address->path.empty() && address->port == 0))
    throw InvalidArgumentError("\"{}\" names no server; it must be host:port or grpc://host:port", target);
  detail::Caller caller;
  caller.credentials = detail::load_credentials(credentials);
  detail::RemoteWorker worker(detail::make_channel(address->to_string(), std::move(caller)), "");
  detail::TaskStatus status;
  try {
    status = detail::from_def(worker.call<detail::GetStatus>({}, std::chrono::steady_clock::now() + timeout));
  } catch (const DeadlineExceededError&) {
    throw UnavailableError("{}: no answer for {} ms", address->to_string(), timeout.count());
  }
  std::string text = fmt::format("{} at {}, kolo {}\n", status.task, address->to_string(), status.version);
  for (const DeviceAttributes& device : status.devices)
    text += fmt::format("  {} (incarnation {:016x}){}{}\n", device.name, device.incarnation,
                        device.description.empty() ? "" : ": ", device.description);
  text +=
      fmt::format("  {} sessions, {} bytes of variables\n", status.sessions.size(), status.variable_bytes);
  for (const auto& wait : status.waits)
    text += fmt::format("  step {} of session {}: {} ({}) waits for {}\n", wait.step, wait.session, wait.node,
                        wait.op, wait.what);
  return text;
}

}  // namespace kolo
