// The port of a task: what other processes call of its worker and its master comes in here.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <kolo/core/cluster/rpc/served.h>

namespace kolo::detail {

/// Any thread. Served objects are called on threads of its own, of which it keeps as many as were needed at
/// once; serve() and on_watcher on those of the transport.
class RpcServer {
 public:
  /// Binds. Throws UnknownError `Could not start gRPC server: <reason>`, with ` <host> is no address of this
  /// machine; give bind_address` where that is it; logs one warning `listens on <addr> without credentials:
  /// who reaches this port can run graphs as user <u>` off loopback without any, on loopback a line like it.
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

}  // namespace kolo::detail
