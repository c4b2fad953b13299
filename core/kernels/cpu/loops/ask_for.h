// Memory that is needed soon. The processor foresees long runs of it by itself, but not where a loop computes
// for long between two reads, nor short pieces that lie apart.
#pragma once

#include <cstdint>

namespace kolo::detail {

/// Starts to load `count` elements into the cache. Any address will do, also behind the end of what is there.
template <typename T>
void ask_for(const T* x, std::int64_t count) {
  constexpr std::int64_t kCacheLine = 64 / sizeof(T);
  for (std::int64_t i = 0; i < count; i += kCacheLine) __builtin_prefetch(x + i);
}

}  // namespace kolo::detail
