#include <kolo/core/base/crc32c.h>

#include <isa-l/crc.h>

#include <algorithm>

namespace kolo {
namespace {

// ISA-L takes the length as an int.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

}  // namespace

void Crc32c::add(const void* bytes, std::size_t count) {
  // It only reads, whatever its signature says.
  auto* next = const_cast<unsigned char*>(static_cast<const unsigned char*>(bytes));
  while (count > 0) {
    const std::size_t piece = std::min(count, kMostBytes);
    state_ = crc32_iscsi(next, static_cast<int>(piece), state_);
    next += piece;
    count -= piece;
  }
}

std::uint32_t crc32c(const void* bytes, std::size_t count) {
  Crc32c sum;
  sum.add(bytes, count);
  return sum.value();
}

}  // namespace kolo
