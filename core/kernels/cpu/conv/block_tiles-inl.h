// The innermost loops of convolutions on images in blocked order: products of blocks whose rows are vectors,
// for the files that are compiled once for each instruction set. A block has as many channels as a vector has
// lanes, so that neither images nor what becomes of them need be packed.
// No #pragma once: foreach_target.h includes those files, and so this one, several times.
#if defined(KOLO_BLOCK_TILES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KOLO_BLOCK_TILES_INL_H
#undef KOLO_BLOCK_TILES_INL_H
#else
#define KOLO_BLOCK_TILES_INL_H
#endif

#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <kolo/core/kernels/cpu/gemm/register_tile-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

#define KOLO_UNROLL(n) _Pragma(HWY_STR(GCC unroll n))

// Rows of a tile of two vectors, or of one.
constexpr int tile_rows(int vectors) { return vectors == 2 ? kTileRows : 2 * kTileRows; }

// Rows of a tile of sum_tile: they must divide a block.
constexpr int kSumRows = kLanes >= 2 ? static_cast<int>(kLanes / 2) : 1;

/// Memory that is needed later: the loops ask for so many cache lines of it at a time, for the second nearest
/// cache.
struct Ahead {
  const float* from = nullptr;
  std::int64_t lines = 0;
};
HWY_INLINE const float* ask_ahead(const float* from, std::int64_t lines) {
  for (; lines > 0; --lines, from += kLine) __builtin_prefetch(from, 0, 2);
  return from;
}

/// c [vectors, rows, lanes] = or += a [blocks, rows, lanes] · b [blocks · lanes, vectors, lanes]; or the
/// product + `added`, 0 where `y` is not > 0.
struct TileProduct {
  const float* a;
  std::int64_t a_stride;  // from block to block; rows lie side by side
  std::int64_t blocks;
  const float* b;
  float* c;
  std::int64_t c_stride;  // from vector to vector
  bool add;
  Ahead ahead = {};  // with each block
  // Unless null, like c; y only together with `added`, which may be c.
  const float* added = nullptr;
  const float* y = nullptr;
};

// Asks for what the tile below adds and masks with, some rows with each block: all at once would fill the
// core's line buffers. 256 → 1024 channels at 14 × 14 take 5.0 ms without a tail, 5.5 where the tile asks for
// its own rows or reckons out each line's place, and 5.1 so (Xeon, family 6 model 167).
template <int kVectors, int kRows>
class TailAhead {
 public:
  HWY_INLINE explicit TailAhead(const TileProduct& in)
      : added_(in.added),
        y_(in.y == nullptr ? in.added : in.y),
        stride_(in.c_stride),
        rows_((kRows + in.blocks - 1) / in.blocks) {}
  HWY_INLINE void ask() {
    for (std::int64_t i = 0; i < rows_ && next_ < 2 * kRows * kLanes; ++i, next_ += kLanes) {
      KOLO_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) {
        __builtin_prefetch(added_ + v * stride_ + next_);
        __builtin_prefetch(y_ + v * stride_ + next_);
      }
    }
  }

 private:
  const float *added_, *y_;
  std::int64_t stride_, rows_, next_ = kRows * kLanes;
};

struct NoTail {
  HWY_INLINE explicit NoTail(const TileProduct&) {}
  HWY_INLINE void ask() {}
};

/// kTail: `added` is not null. A tile that asks whether it is costs convolutions without up to 5 %.
template <int kVectors, int kRows, bool kTail>
void product_tile(const TileProduct& in) {
  const Floats d;
  V sums[kRows][kVectors];
  KOLO_UNROLL(32)
  for (int r = 0; r < kRows; ++r) {
    KOLO_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const float *HWY_RESTRICT a = in.a, *HWY_RESTRICT b = in.b, *ahead = in.ahead.from;
  std::conditional_t<kTail, TailAhead<kVectors, kRows>, NoTail> tail(in);
  for (std::int64_t block = 0; block < in.blocks; ++block, a += in.a_stride) {
    ahead = ask_ahead(ahead, in.ahead.lines);
    tail.ask();
    KOLO_UNROLL(4)
    for (std::int64_t k = 0; k < kLanes; ++k, b += kVectors * kLanes) {
      V row[kVectors];
      KOLO_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) row[v] = hn::Load(d, b + v * kLanes);
      KOLO_UNROLL(32)
      for (int r = 0; r < kRows; ++r) {
        const V factor = hn::Set(d, a[r * kLanes + k]);
        KOLO_UNROLL(2)
        for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, row[v], sums[r][v]);
      }
    }
  }
  KOLO_UNROLL(2)
  for (int v = 0; v < kVectors; ++v) {
    float* const c = in.c + v * in.c_stride;
    KOLO_UNROLL(32)
    for (int r = 0; r < kRows; ++r) {
      V sum = sums[r][v];
      if (in.add) sum = hn::Add(sum, hn::Load(d, c + r * kLanes));
      if constexpr (kTail) {
        const std::int64_t at = v * in.c_stride + r * kLanes;
        sum = hn::Add(sum, hn::Load(d, in.added + at));
        if (in.y != nullptr) sum = hn::IfThenElseZero(hn::Gt(hn::Load(d, in.y + at), hn::Zero(d)), sum);
      }
      hn::Store(sum, d, c + r * kLanes);
    }
  }
}

using ProductTile = void (*)(const TileProduct&);
template <int kVectors, bool kTail, int... kRows>
constexpr std::array<ProductTile, sizeof...(kRows)> product_tiles(std::integer_sequence<int, kRows...>) {
  return {product_tile<kVectors, kRows + 1, kTail>...};
}
/// The function for tiles of `rows` rows, 1 to tile_rows(kVectors); kTail: that of products with `added`.
template <int kVectors, bool kTail = false>
ProductTile product_tile_of(std::int64_t rows) {
  static constexpr auto kTiles =
      product_tiles<kVectors, kTail>(std::make_integer_sequence<int, tile_rows(kVectors)>());
  return kTiles[static_cast<std::size_t>(rows - 1)];
}

/// c [kSumRows, vectors · lanes] = or += the sum over n < count of x [n, kSumRows] times y [vectors, n,
/// lanes].
struct TileSum {
  const float* x;  // rows are `lanes` apart
  const float* y;
  std::int64_t y_stride;  // from vector to vector
  std::int64_t count;
  float* c;
  std::int64_t c_stride;  // from row to row
  bool add;
  std::int64_t pieces = 1;
  std::int64_t x_piece = 0, y_piece = 0;  // from piece to piece
  Ahead ahead = {};                       // with each 4 terms
};

// kRows: clang-tidy 14 dies of an array of which one dimension alone depends on a parameter.
template <int kVectors, int kRows = kSumRows>
void sum_tile(const TileSum& in) {
  const Floats d;
  V sums[kRows][kVectors];
  KOLO_UNROLL(16)
  for (int r = 0; r < kRows; ++r) {
    KOLO_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const float *HWY_RESTRICT x = in.x, *HWY_RESTRICT y = in.y, *ahead = in.ahead.from;
  const auto add_term = [&](std::int64_t n) HWY_ATTR {
    V row[kVectors];
    KOLO_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) row[v] = hn::Load(d, y + v * in.y_stride + n * kLanes);
    KOLO_UNROLL(16)
    for (int r = 0; r < kRows; ++r) {
      const V factor = hn::Set(d, x[n * kLanes + r]);
      KOLO_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, row[v], sums[r][v]);
    }
  };
  for (std::int64_t piece = 0; piece < in.pieces; ++piece, x += in.x_piece, y += in.y_piece) {
    std::int64_t n = 0;
    for (; n + 4 <= in.count; n += 4) {
      ahead = ask_ahead(ahead, in.ahead.lines);
      KOLO_UNROLL(4)
      for (int i = 0; i < 4; ++i) add_term(n + i);
    }
    for (; n < in.count; ++n) add_term(n);
  }
  KOLO_UNROLL(16)
  for (int r = 0; r < kRows; ++r) {
    float* const c = in.c + r * in.c_stride;
    KOLO_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) {
      V sum = sums[r][v];
      if (in.add) sum = hn::Add(sum, hn::Load(d, c + v * kLanes));
      hn::Store(sum, d, c + v * kLanes);
    }
  }
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KOLO_BLOCK_TILES_INL_H
