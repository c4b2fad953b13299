// Copies between the caches of two cores.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kolo {

/// As memcpy, whose way of copying long blocks (string instructions) suits memory that is far away, not lines
/// that another core has just written or is about to read.
void copy_near(std::byte* to, const std::byte* from, std::int64_t bytes);

/// The same for lines of `from` that another core has written and this one will write next: asks for them as
/// their owner, which saves asking again.
void take_over(std::byte* to, std::byte* from, std::int64_t bytes);

}  // namespace kolo
