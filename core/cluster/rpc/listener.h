// Where a task listens: the addresses of its own host entry.
#pragma once

#include <string>
#include <vector>

#include <kolo/core/cluster/rpc/descriptor_internal.h>

namespace kolo::detail {

struct Listening {
  std::vector<Descriptor> sockets;  // each address of the host; do not block
  int port = 0;                     // the bound one; 0 for a path
  std::string path;                 // of a socket in the file system; "" for ports
  bool only_this_machine = false;   // who is elsewhere cannot reach it
};

/// Binds `address`, or `bind_address` with the port of `address`. Throws UnknownError `Could not start gRPC
/// server: <reason>`, InvalidArgumentError for an address that is none.
Listening listen_at(const std::string& address, const std::string& bind_address);

}  // namespace kolo::detail
