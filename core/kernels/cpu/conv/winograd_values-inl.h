// Tiles of images, and what Winograd's algorithms make of them, for the files that are compiled once for each
// instruction set.
// No #pragma once: foreach_target.h includes those files, and so this one, several times.
#if defined(KOLO_WINOGRAD_VALUES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KOLO_WINOGRAD_VALUES_INL_H
#undef KOLO_WINOGRAD_VALUES_INL_H
#else
#define KOLO_WINOGRAD_VALUES_INL_H
#endif

#include <cstdint>

#include <kolo/core/kernels/cpu/conv/winograd_maps-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

constexpr std::int64_t kPoints = kPatch * kPatch;

// Between points: an odd number of cache lines, or what belongs to one tile would share few of the cache's
// sets.
constexpr std::int64_t odd_lines(std::int64_t floats) { return ((floats + kLine - 1) / kLine | 1) * kLine; }

// Where tile `n` of all lies.
struct TilePlace {
  std::int64_t image, row, col;
};
class Tiles {
 public:
  // down, across: of an image. side: pixels of a tile's side.
  Tiles(std::int64_t images, std::int64_t down, std::int64_t across, std::int64_t side)
      : images_(images), down_(down), across_(across), side_(side) {}
  std::int64_t side() const { return side_; }
  std::int64_t count() const { return images_ * down_ * across_; }
  TilePlace place(std::int64_t n) const {
    return {n / (down_ * across_), n / across_ % down_ * side_, n % across_ * side_};
  }
  void next(TilePlace& place) const {
    place.col += side_;
    if (place.col < across_ * side_) return;
    place.col = 0, place.row += side_;
    if (place.row < down_ * side_) return;
    place.row = 0, ++place.image;
  }

 private:
  std::int64_t images_, down_, across_, side_;
};

// A square of pixels of one block that may lie partly outside.
template <bool kInside>
struct PixelSquare {
  const float* plane;
  std::int64_t rows, cols;  // of the plane
  std::int64_t top, left;
  HWY_INLINE V operator()(int r, int c) const {
    const std::int64_t row = top + r, col = left + c;
    if (!kInside && (row < 0 || row >= rows || col < 0 || col >= cols)) return hn::Zero(Floats());
    return hn::Load(Floats(), plane + (row * cols + col) * kLanes);
  }
};

struct ToPoints {
  float* at;
  std::int64_t stride;
  HWY_INLINE void operator()(int row, int col, V x) const {
    hn::Store(x, Floats(), at + (row * kPatch + col) * stride);
  }
};
// The same past the caches, for what is read much later.
struct StreamToPoints {
  float* at;
  std::int64_t stride;
  HWY_INLINE void operator()(int row, int col, V x) const {
    hn::Stream(x, Floats(), at + (row * kPatch + col) * stride);
  }
};
struct FromPoints {
  const float* at;
  std::int64_t stride;
  HWY_INLINE V operator()(int row, int col) const {
    return hn::Load(Floats(), at + (row * kPatch + col) * stride);
  }
};

template <bool kInside>
struct ToPixels {
  float* plane;
  std::int64_t rows, cols;
  std::int64_t top, left;
  HWY_INLINE void operator()(int r, int c, V x) const {
    if (!kInside && (top + r >= rows || left + c >= cols)) return;
    hn::Store(x, Floats(), plane + ((top + r) * cols + left + c) * kLanes);
  }
};

// Values of tiles: [points, blocks, tiles, lanes].
struct Values {
  float* at;
  std::int64_t blocks;
  std::int64_t tiles;
  std::int64_t block_stride() const { return tiles * kLanes; }
  std::int64_t point_stride() const { return odd_lines(blocks * block_stride()); }
  float* block(std::int64_t point, std::int64_t n) const {
    return at + point * point_stride() + n * block_stride();
  }
  static std::int64_t floats(std::int64_t blocks, std::int64_t tiles) {
    return kPoints * odd_lines(blocks * tiles * kLanes);
  }
};

struct Pixels {
  const float* at;  // [images, blocks, rows, cols, lanes]
  std::int64_t rows, cols;
};
// The values of a square of each tile, which begins so many rows and columns before the tile does. first: the
// first tile.
template <typename Map>
void map_pixels(const Pixels& x, std::int64_t rows_before, std::int64_t cols_before, const Tiles& tiles,
                std::int64_t first, const Values& values) {
  const std::int64_t rows = x.rows, cols = x.cols;
  for (std::int64_t b = 0; b < values.blocks; ++b) {
    TilePlace place = tiles.place(first);
    float* at = values.block(0, b);
    for (std::int64_t t = 0; t < values.tiles; ++t, tiles.next(place), at += kLanes) {
      const std::int64_t top = place.row - rows_before, left = place.col - cols_before;
      const float* const plane = x.at + (place.image * values.blocks + b) * rows * cols * kLanes;
      const ToPoints to{at, values.point_stride()};
      // The pixels that the tile below this one adds.
      const float* const below = plane + ((top + Map::kIn) * cols + left + Map::kIn - tiles.side()) * kLanes;
      for (std::int64_t r = 0; r < tiles.side(); ++r)
        for (std::int64_t i = 0; i < tiles.side(); ++i) hwy::Prefetch(below + (r * cols + i) * kLanes);
      if (top >= 0 && left >= 0 && top + Map::kIn <= rows && left + Map::kIn <= cols)
        map_square<Map>(PixelSquare<true>{plane, rows, cols, top, left}, to);
      else map_square<Map>(PixelSquare<false>{plane, rows, cols, top, left}, to);
    }
  }
}

template <typename Map>
void map_results(const Values& values, const Tiles& tiles, std::int64_t first, float* y, std::int64_t rows,
                 std::int64_t cols) {
  for (std::int64_t b = 0; b < values.blocks; ++b) {
    TilePlace place = tiles.place(first);
    const float* at = values.block(0, b);
    for (std::int64_t t = 0; t < values.tiles; ++t, tiles.next(place), at += kLanes) {
      float* const plane = y + (place.image * values.blocks + b) * rows * cols * kLanes;
      const FromPoints from{at, values.point_stride()};
      if (place.row + Map::kOut <= rows && place.col + Map::kOut <= cols)
        map_square<Map>(from, ToPixels<true>{plane, rows, cols, place.row, place.col});
      else map_square<Map>(from, ToPixels<false>{plane, rows, cols, place.row, place.col});
    }
  }
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KOLO_WINOGRAD_VALUES_INL_H
