#include <kolo/collectives/transport/free_ranges.h>

#include <iterator>

namespace kolo {

FreeRanges::FreeRanges(std::int64_t bytes) {
  if (bytes > 0) add(0, bytes);
}

void FreeRanges::add(std::int64_t offset, std::int64_t bytes) {
  by_offset_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
  free_bytes_ += bytes;
}

void FreeRanges::remove(std::int64_t offset, std::int64_t bytes) {
  by_offset_.erase(offset);
  by_size_.erase({bytes, offset});
  free_bytes_ -= bytes;
}

std::optional<std::int64_t> FreeRanges::allocate(std::int64_t bytes, std::int64_t alignment) {
  for (auto it = by_size_.lower_bound({bytes, 0}); it != by_size_.end(); ++it) {
    const auto [size, begin] = *it;
    const std::int64_t offset = (begin + alignment - 1) / alignment * alignment;
    const std::int64_t rest = begin + size - (offset + bytes);
    if (rest < 0) continue;
    remove(begin, size);
    if (offset > begin) add(begin, offset - begin);
    if (rest > 0) add(offset + bytes, rest);
    return offset;
  }
  return std::nullopt;
}

void FreeRanges::free(std::int64_t offset, std::int64_t bytes) {
  auto next = by_offset_.lower_bound(offset);
  if (next != by_offset_.begin()) {
    const auto [before, size] = *std::prev(next);
    if (before + size == offset) {
      remove(before, size);
      offset = before;
      bytes += size;
    }
  }
  next = by_offset_.lower_bound(offset);
  if (next != by_offset_.end() && next->first == offset + bytes) {
    const auto size = next->second;
    remove(next->first, size);
    bytes += size;
  }
  add(offset, bytes);
}

}  // namespace kolo
