#include <kolo/collectives/transport/copy.h>

#include <cstring>

// Compiled once for each instruction set, as reduce.cc is.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kolo/collectives/transport/copy.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Far enough to hide the way to another core, near enough to stay within the copy.
constexpr std::int64_t kAheadBytes = 1024;

template <bool kTakeOver>
HWY_INLINE void copy_lines(std::byte* to, const std::byte* from, std::int64_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto* const out = reinterpret_cast<std::uint8_t*>(to);
  const auto* const in = reinterpret_cast<const std::uint8_t*>(from);
  constexpr std::int64_t kBlock = 256;
  std::int64_t i = 0;
  for (; i + kBlock <= bytes; i += kBlock) {
    if (kTakeOver)
      for (std::int64_t line = 0; line < kBlock; line += 64)
#if defined(__x86_64__)
        asm volatile("prefetchw %0" : : "m"(in[i + kAheadBytes + line]));
#else
        __builtin_prefetch(in + i + kAheadBytes + line, 1);
#endif
    for (std::int64_t k = 0; k < kBlock; k += lanes) hn::StoreU(hn::LoadU(d, in + i + k), d, out + i + k);
  }
  if (i < bytes) std::memcpy(out + i, in + i, static_cast<std::size_t>(bytes - i));
}

void copy_all(std::byte* to, const std::byte* from, std::int64_t bytes) {
  copy_lines<false>(to, from, bytes);
}
void take_over_all(std::byte* to, const std::byte* from, std::int64_t bytes) {
  copy_lines<true>(to, from, bytes);
}

}  // namespace
}  // namespace kolo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo {
namespace {

HWY_EXPORT(copy_all);
HWY_EXPORT(take_over_all);

}  // namespace

void copy_near(std::byte* to, const std::byte* from, std::int64_t bytes) {
  HWY_DYNAMIC_DISPATCH(copy_all)(to, from, bytes);
}

void take_over(std::byte* to, std::byte* from, std::int64_t bytes) {
  HWY_DYNAMIC_DISPATCH(take_over_all)(to, from, bytes);
}

}  // namespace kolo
#endif  // HWY_ONCE
