// Where values that are fed to a session lie best.
#pragma once

#include <kolo/core/runtime/session.h>
#include <kolo/core/tensor/allocator.h>

namespace kolo {

/// Memory of the host from which the session's GPU copies while the host goes on; cpu_allocator() without a
/// GPU, and for a session on a server. It outlives the session. Any thread.
Allocator& feed_memory(Session& session);

}  // namespace kolo
