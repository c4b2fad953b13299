// Looks at a server from outside: is it there, who is it, what does it hold.
#pragma once

#include <chrono>
#include <string>

#include <kolo/core/cluster/credentials.h>

namespace kolo {

/// Lines for people: the task, its devices with their incarnations, its sessions, the bytes of its variables.
/// target: `grpc://host:port`, or without the prefix. credentials: what is left out, of the environment.
/// Throws InvalidArgumentError for a target that names no server, UnavailableError naming the address where
/// nobody answers in time, FailedPreconditionError where this process is refused.
std::string check_server(const std::string& target, const ClusterCredentials& credentials = {},
                         std::chrono::milliseconds timeout = std::chrono::seconds(5));

}  // namespace kolo
