// Where a task listens: the addresses of its own host entry, and whether they can be had.
#pragma once

#include <string>
#include <vector>

namespace kolo::detail {

struct ListenPlan {
  std::vector<std::string> targets;  // as gRPC takes them, with the port; port 0: one target
  std::string path;                  // of a socket in the file system; "" for ports
  bool only_this_machine = false;
};

/// Looks up `address` (or `bind_address`, with the port of `address`) and tries to bind, so that the reason
/// is known where that fails. Throws UnknownError `Could not start gRPC server: <reason>`,
/// InvalidArgumentError for an address that is none.
ListenPlan plan_listening(const std::string& address, const std::string& bind_address);

}  // namespace kolo::detail
