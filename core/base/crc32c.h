// CRC-32C (Castagnoli, RFC 3720 §12.1), the checksum of checkpoints and event files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kolo {

/// Sum of several pieces in order: add() each, then value(). crc32c("123456789") = 0xE3069283.
class Crc32c {
 public:
  void add(const void* bytes, std::size_t count);
  std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = ~std::uint32_t{0};
};

std::uint32_t crc32c(const void* bytes, std::size_t count);

}  // namespace kolo
