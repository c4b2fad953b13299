// From a session's target to the master that keeps it.
#pragma once

#include <memory>
#include <string>

#include <kolo/core/cluster/master/master.h>
#include <kolo/core/runtime/config.h>

namespace kolo::detail {

struct ConnectedMaster {
  std::shared_ptr<Master> master;
  bool in_process = false;  // called without a socket
};

/// Of `grpc://host:port`; does not speak to it yet. Throws InvalidArgumentError for a target without a port,
/// and what the credentials of the environment lack.
ConnectedMaster connect_master(const std::string& target, const SessionConfig& config);

}  // namespace kolo::detail
