#include <kolo/core/runtime/feed_memory.h>

#include <kolo/core/runtime/session_state.h>

namespace kolo {

Allocator& feed_memory(Session& session) {
  if (detail::remote_of(session) != nullptr) return cpu_allocator();
  for (const auto& device : detail::state_of(session).devices().devices())
    if (device->type() == "GPU") return device->host_allocator();
  return cpu_allocator();
}

}  // namespace kolo
