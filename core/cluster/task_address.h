// Addresses of tasks as a cluster spec lists them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kolo::detail {

/// Either host and port or the path of a socket in the file system.
struct TaskAddress {
  std::string host;  // a name, a.b.c.d, or the address of IP version 6 without brackets; lower case
  int port = 0;
  std::string path = {};  // of `unix:/path`
  bool operator==(const TaskAddress&) const = default;
  /// One text for each address: `[v6]:port` in the short form, names in lower case.
  std::string to_string() const;
};

/// `host:port`, `a.b.c.d:port`, `[v6]:port`, `unix:/path`; nothing for all else. Ports are 0 … 65535.
std::optional<TaskAddress> parse_task_address(std::string_view text);
/// Throws InvalidArgumentError `Could not interpret "<addr>" as a host-port pair.`
TaskAddress task_address_of(std::string_view text);

}  // namespace kolo::detail
