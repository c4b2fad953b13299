// What a task's port serves, and for whom.
#pragma once

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

class StepStreams;

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
  std::uint64_t cluster_fingerprint = 0;      // with the bound port in it
  std::shared_ptr<StepStreams> streams = {};  // null: no values come on RunGraph
  /// watcher: the task that watches this one, or `client`. lost: its end was not announced. Must not block.
  std::function<void(const TaskProcess& watcher, WatcherEvent event)> on_watcher = {};
  /// What master and worker throw for a session that is not there. Must not block.
  std::function<void(const std::string& session)> check_session = {};
  std::function<void(const std::string& session)> check_worker_session = {};
};

/// Who has sent the call that this thread serves: `/job:worker/replica:0/task:0 at ipv4:10.0.0.1:4711`, or
/// `client at …`; "" on other threads.
const std::string& rpc_caller();

}  // namespace kolo::detail
