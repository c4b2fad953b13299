#include <kolo/core/base/crc32c.h>

#include <boost/crc.hpp>

namespace kolo {
namespace {

// Reflected in and out; the register is kept un-inverted between pieces,
// so that pieces can follow each other.
using Sum = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0, true, true>;

std::uint32_t reflect(std::uint32_t bits) {
  std::uint32_t out = 0;
  for (int i = 0; i < 32; ++i, bits >>= 1) out = out << 1 | (bits & 1);
  return out;
}

}  // namespace

void Crc32c::add(const void* bytes, std::size_t count) {
  Sum sum(reflect(state_));
  sum.process_bytes(bytes, count);
  state_ = sum.checksum();
}

std::uint32_t crc32c(const void* bytes, std::size_t count) {
  Crc32c sum;
  sum.add(bytes, count);
  return sum.value();
}

}  // namespace kolo
