// Memory that a process has and does not need for now.
#pragma once

#include <cstddef>

namespace kolo {

/// What stands in `bytes` of the host's memory from `block` on is not needed any more: the system may have
/// the pages, of those that lie wholly within. The memory stays the caller's, with any content, and takes
/// pages again when it is written. Does nothing for less than 4 MiB. Any thread, while no other uses the
/// block.
void give_pages_back(void* block, std::size_t bytes) noexcept;

}  // namespace kolo
