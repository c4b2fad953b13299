// A server's configuration over that of a session on it.
#pragma once

#include <kolo/core/runtime/config.h>

namespace kolo::detail {

/// The server's scalars where they differ from their defaults, its lists behind the session's, its maps over
/// the session's entries. What a server fixes for all its sessions (devices, GPU options, threads) is the
/// server's alone.
SessionConfig merged_config(const SessionConfig& server, const SessionConfig& session);

}  // namespace kolo::detail
