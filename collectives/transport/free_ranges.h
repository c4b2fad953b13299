// Cuts pieces out of a long range of bytes and takes them back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace kolo {

/// Knows offsets only, not the memory behind them. Best fit: the smallest free piece that is large enough;
/// pieces that come back join their neighbours. One thread at a time.
class FreeRanges {
 public:
  explicit FreeRanges(std::int64_t bytes);
  /// The offset of `bytes` (more than 0), a multiple of `alignment` (a power of two); nothing if no free
  /// piece is large enough.
  std::optional<std::int64_t> allocate(std::int64_t bytes, std::int64_t alignment);
  /// What allocate() returned for as many bytes.
  void free(std::int64_t offset, std::int64_t bytes);
  std::int64_t free_bytes() const { return free_bytes_; }

 private:
  void add(std::int64_t offset, std::int64_t bytes);
  void remove(std::int64_t offset, std::int64_t bytes);

  std::map<std::int64_t, std::int64_t> by_offset_;           // offset → bytes, of the free pieces
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  // (bytes, offset) of the same
  std::int64_t free_bytes_ = 0;
};

}  // namespace kolo
