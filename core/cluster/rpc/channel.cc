#include <kolo/core/cluster/rpc/channel.h>

#include <utility>

#include <fmt/format.h>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <kolo/core/cluster/task_address.h>

#include <kolo/core/cluster/rpc/client_call_internal.h>
#include <kolo/core/cluster/rpc/transport_internal.h>

namespace kolo::detail {
namespace {

constexpr int kBackoffMs = 1000;
constexpr int kConnectMs = 4000;
constexpr int kLargestMessage = (16 << 20) + (64 << 10);

bool is_number(const std::string& host) { return host.find_first_not_of("0123456789.") == std::string::npos; }

// Numbers and `localhost` need no resolver; `localhost` is 127.0.0.1, where servers of that name listen.
std::string transport_target(const TaskAddress& address) {
  if (!address.path.empty()) return "unix:" + address.path;
  if (address.host == "localhost") return fmt::format("ipv4:127.0.0.1:{}", address.port);
  if (is_number(address.host)) return fmt::format("ipv4:{}:{}", address.host, address.port);
  if (address.host.find(':') != std::string::npos)
    return fmt::format("ipv6:%5B{}%5D:{}", address.host, address.port);
  return fmt::format("dns:///{}:{}", address.host, address.port);
}

grpc::ChannelArguments arguments_for(const TaskAddress& address) {
  grpc::ChannelArguments arguments;
  set_common_arguments([&](const char* name, int value) { arguments.SetInt(name, value); });
  arguments.SetInt("grpc.initial_reconnect_backoff_ms", kBackoffMs);
  arguments.SetInt("grpc.max_reconnect_backoff_ms", kBackoffMs);
  arguments.SetInt("grpc.min_reconnect_backoff_ms", kConnectMs);  // how long an attempt may take
  arguments.SetInt("grpc.dns_min_time_between_resolutions_ms", kBackoffMs);
  arguments.SetInt("grpc.enable_retries", 0);
  arguments.SetInt("grpc.enable_http_proxy", 0);
  arguments.SetInt("grpc.service_config_disable_resolution", 1);
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);  // a back-off of its own
  arguments.SetMaxReceiveMessageSize(kLargestMessage);
  const std::string host = address.path.empty() ? address.host : "localhost";
  arguments.SetString("grpc.default_authority", host);
  return arguments;
}

std::shared_ptr<grpc::ChannelCredentials> transport_credentials(const LoadedCredentials& loaded) {
  if (!loaded.tls()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = loaded.ca;
  options.pem_private_key = loaded.key;
  options.pem_cert_chain = loaded.certificate;
  return grpc::SslCredentials(options);
}

}  // namespace

const char* rpc_version() { return KOLO_VERSION; }

RpcChannel::RpcChannel(std::string address, Caller caller)
    : address_(std::move(address)), caller_(std::move(caller)) {
  caller_.limits = resolved(caller_.limits);
  task_address_of(address_);  // throws
  use_transport();
}

std::shared_ptr<grpc::Channel> RpcChannel::transport() {
  MutexLock lock(mutex_);
  if (transport_ == nullptr || transport_->GetState(false) == GRPC_CHANNEL_TRANSIENT_FAILURE) {
    const TaskAddress parsed = task_address_of(address_);
    transport_ = grpc::CreateCustomChannel(transport_target(parsed),
                                           transport_credentials(caller_.credentials), arguments_for(parsed));
  }
  return transport_;
}

std::shared_ptr<RpcChannel> make_channel(const std::string& address, Caller caller) {
  return std::make_shared<RpcChannel>(address, std::move(caller));
}

}  // namespace kolo::detail
