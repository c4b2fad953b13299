// The innermost loops of streamed_gemm.cc, and the orders in which they read their operands.
// No #pragma once: foreach_target.h includes that file, and so this one, several times.
#if defined(KOLO_GEMM_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KOLO_GEMM_TILE_INL_H
#undef KOLO_GEMM_TILE_INL_H
#else
#define KOLO_GEMM_TILE_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <kolo/core/kernels/cpu/gemm/gemm_panels-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

// How a band of rows of op(a) is packed. by_rows: a line of each row, then their next lines: a copy where a's
// rows are op(a)'s. by_terms: a line for each term, with that term of all rows: a copy where a is transposed.
enum class Order { by_rows, by_terms };

template <int kRows>
void pack_by_rows(const float* a, std::int64_t stride, std::int64_t depth, float* band) {
  for (std::int64_t k = 0; k < depth; k += kLine)
    for (int r = 0; r < kRows; ++r, band += kLine) {
      const float* const from = a + r * stride + k;
      if (k + kLine <= depth) std::copy_n(from, kLine, band);
      else std::copy_n(from, depth - k, band);
    }
}

template <int kRows>
void pack_by_terms(const float* a, std::int64_t stride, std::int64_t depth, float* band) {
  for (std::int64_t k = 0; k < depth; ++k, band += kLine) std::copy_n(a + k * stride, kRows, band);
}

// [depth, kTileCols] of b. A tile that packs reads `from`, whose rows are `stride` apart, and writes
// `packed`, in the shadow of its sums; the others read `packed`.
struct Panel {
  float* packed;
  const float* from;
  std::int64_t stride;
};

// What is asked for while a tile adds up: little at a time, or it would leave the loads no line buffers. Of c
// one line for 8 terms, by turns one and the other step apart. Of what comes next, into the second nearest
// cache, a pair of lines for `terms` terms, 4 or 8, `step` apart, and after each 8 pairs by `jump` more. Any
// address will do.
struct Asked {
  const float* c;
  std::int64_t even_step, odd_step;
  const float* next;
  std::int64_t step, jump;
  std::int64_t terms;
};

// Rows by which a packing tile asks for b, into the nearest cache. GFLOP/s for 4, 8 and 16, as in linalg.cc:
// 64 × 3136 × 1024: 115, 122, 125; 64 × 3136 × 1056: 134, 140, 142; 128 × 1024 × 1024: 138, 142, 147.
constexpr std::int64_t kRowsAhead = 16;

// [kRows, kTileCols] of c.
template <int kRows, Order kOrder, bool kPack>
HWY_NOINLINE void tile(const float* HWY_RESTRICT band, const Panel& b, std::int64_t depth, const Target& to,
                       Asked ask) {
  constexpr std::int64_t kRow = kOrder == Order::by_rows ? kLine : 1;
  const Floats d;
  float* const HWY_RESTRICT packed = b.packed;
  const float* from = b.from;
  V sums[kRows][2];
  KOLO_UNROLL
  for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = hn::Zero(d);
  const auto add_term = [&](const float* a, std::int64_t k) HWY_ATTR {
    V b0, b1;
    if constexpr (kPack) {
      b0 = hn::LoadU(d, from), b1 = hn::LoadU(d, from + kLanes);
      hn::Store(b0, d, packed + k * kTileCols), hn::Store(b1, d, packed + k * kTileCols + kLanes);
      hwy::Prefetch(from + kRowsAhead * b.stride);
      hwy::Prefetch(from + kRowsAhead * b.stride + kLanes);
      from += b.stride;
    } else {
      b0 = hn::Load(d, packed + k * kTileCols), b1 = hn::Load(d, packed + k * kTileCols + kLanes);
    }
    KOLO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const V factor = hn::Set(d, a[r * kRow]);
      sums[r][0] = hn::MulAdd(factor, b0, sums[r][0]);
      sums[r][1] = hn::MulAdd(factor, b1, sums[r][1]);
    }
  };
  std::int64_t k = 0;
  for (; k + kLine <= depth; k += kLine) {
    const float* const a = band + k * (kOrder == Order::by_rows ? kRows : kLine);
    for (std::int64_t first = 0; first < kLine; first += 4) {
      if ((first & (ask.terms - 1)) == 0) {
        __builtin_prefetch(ask.next, 0, 2);
        __builtin_prefetch(ask.next + kLine, 0, 2);
        ask.next += ask.step;
      }
      if (first % 8 == 0) {
        hwy::Prefetch(ask.c);
        ask.c += ask.even_step;
        std::swap(ask.even_step, ask.odd_step);
      }
      KOLO_UNROLL
      for (std::int64_t i = first; i < first + 4; ++i)
        add_term(a + i * (kOrder == Order::by_rows ? 1 : kLine), k + i);
    }
    if (((k + kLine) & (8 * ask.terms - 1)) == 0) ask.next += ask.jump;
  }
  for (; k < depth; ++k)
    add_term(band + (kOrder == Order::by_rows ? k / kLine * kLine * kRows + k % kLine : k * kLine), k);
  store_tile(sums, to);
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
