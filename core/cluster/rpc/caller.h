// What a process says of itself to those it calls.
#pragma once

#include <cstdint>
#include <string>

#include <kolo/core/cluster/credentials.h>
#include <kolo/core/cluster/rpc/limits.h>

namespace kolo::detail {

/// What a process says of itself in each call.
struct Caller {
  std::string name = "client";            // of a task: /job:worker/replica:0/task:0
  std::uint64_t cluster_fingerprint = 0;  // 0: a client, which need not know the cluster
  LoadedCredentials credentials = {};
  RpcLimits limits = {};
  std::uint64_t incarnation = 0;  // of a task's process, see TaskProcess
};

/// kolo's version, which both ends of a call must share.
const char* rpc_version();

}  // namespace kolo::detail
