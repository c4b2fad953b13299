// The port of a task: what other processes call of its worker and its master comes in here.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <kolo/core/cluster/credentials.h>
#include <kolo/core/cluster/master/master.h>
#include <kolo/core/cluster/rpc/limits.h>
#include <kolo/core/cluster/worker/tensor_sink.h>
#include <kolo/core/cluster/worker/worker.h>

namespace kolo::detail {

/// What another process that watches this task does.
enum class WatcherEvent { connected, stopping, lost };

struct RpcServerOptions {
  std::string task;            // /job:ps/replica:0/task:1
  std::string address;         // its own, as the cluster has it
  std::string bind_address{};  // "": that of `address`; 0.0.0.0 and ::: every interface
  LoadedCredentials credentials{};
  RpcLimits limits{};
};

/// What is served; all outlive the server.
struct Served {
  Worker& worker;
  TensorSource& tensors;
  Master& master;
  std::uint64_t cluster_fingerprint = 0;  // with the bound port in it
  /// watcher: the task that watches this one, or `client`. lost: its end was not announced. Must not block.
  std::function<void(const std::string& watcher, WatcherEvent event)> on_watcher = {};
};

/// Any thread. Served objects are called on threads of its own, of which it keeps as many as were needed at
/// once; serve() and on_watcher on those of the transport.
class RpcServer {
 public:
  /// Binds. Throws UnknownError `Could not start gRPC server: <reason>`, with ` <host> is no address of this
  /// machine; give bind_address` where that is it; logs one warning `listens on <addr> without credentials:
  /// who reaches this port can run graphs as user <u>` off loopback without any.
  explicit RpcServer(RpcServerOptions options);
  /// As stop() without grace.
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  /// With the bound port in it: `localhost:41234`, `unix:/path`.
  const std::string& address() const;
  /// Calls that came before are served now. Once.
  void start(const Served& served);
  /// From now on new calls get UnavailableError `<task> is shutting down`. Those under way may end within
  /// `grace`, then they are cancelled; watches end last. When it returns the port is free and nothing of
  /// `served` is used any more. Idempotent; also without start().
  void stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Who has sent the call that this thread serves: `/job:worker/replica:0/task:0 at ipv4:10.0.0.1:4711`, or
/// `client at …`; "" on other threads.
const std::string& rpc_caller();

}  // namespace kolo::detail
