// The linear maps of Winograd's algorithm F(4 × 4, 3 × 3), of vectors that hold a number of each channel of a
// block, for the files that are compiled once for each instruction set.
// No #pragma once: foreach_target.h includes those files, and so this one, several times.
#if defined(KOLO_WINOGRAD_MAPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KOLO_WINOGRAD_MAPS_INL_H
#undef KOLO_WINOGRAD_MAPS_INL_H
#else
#define KOLO_WINOGRAD_MAPS_INL_H
#endif

#include <hwy/highway.h>

#include <kolo/core/kernels/cpu/block_tiles-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

// A tile of results and a window are polynomials; their product is known by its values at the points 0, ±a,
// ±b and ∞. These points lose fewer digits than 0, ±1, ±2 (a sum of the magnitudes that the maps make, as
// oneDNN chose them).
constexpr float kA = 5.0f / 8, kB = 3.0f / 2, kA2 = kA * kA, kB2 = kB * kB;
// What the window's values are divided by: the products of the differences between a point and the others.
constexpr float kAtZero = 1 / (kA2 * kB2), kAtA = 1 / (2 * kA2 * (kA2 - kB2)),
                kAtB = 1 / (2 * kB2 * (kB2 - kA2));

HWY_INLINE V times(float factor, V x) {
  return hwy::HWY_NAMESPACE::Mul(hwy::HWY_NAMESPACE::Set(Floats(), factor), x);
}
// factor · x + y
HWY_INLINE V plus(float factor, V x, V y) {
  return hwy::HWY_NAMESPACE::MulAdd(hwy::HWY_NAMESPACE::Set(Floats(), factor), x, y);
}

// An image's values at the points (Bᵀ).
struct ImageMap {
  static constexpr int kIn = 6, kOut = 6;
  HWY_INLINE static void apply(const V* d, V* out) {
    namespace hn = hwy::HWY_NAMESPACE;
    const V even_a = plus(-kB2, d[2], d[4]), odd_a = times(kA, plus(-kB2, d[1], d[3]));
    const V even_b = plus(-kA2, d[2], d[4]), odd_b = times(kB, plus(-kA2, d[1], d[3]));
    out[0] = plus(kA2 * kB2, d[0], plus(-(kA2 + kB2), d[2], d[4]));
    out[1] = hn::Add(even_a, odd_a);
    out[2] = hn::Sub(even_a, odd_a);
    out[3] = hn::Add(even_b, odd_b);
    out[4] = hn::Sub(even_b, odd_b);
    out[5] = plus(kA2 * kB2, d[1], plus(-(kA2 + kB2), d[3], d[5]));
  }
};

// The results that belong to the products (Aᵀ).
struct ResultMap {
  static constexpr int kIn = 6, kOut = 4;
  HWY_INLINE static void apply(const V* m, V* out) {
    namespace hn = hwy::HWY_NAMESPACE;
    const V even_a = hn::Add(m[1], m[2]), odd_a = hn::Sub(m[1], m[2]);
    const V even_b = hn::Add(m[3], m[4]), odd_b = hn::Sub(m[3], m[4]);
    out[0] = hn::Add(m[0], hn::Add(even_a, even_b));
    out[1] = plus(kB, odd_b, times(kA, odd_a));
    out[2] = plus(kB2, even_b, times(kA2, even_a));
    out[3] = plus(kB2 * kB, odd_b, plus(kA2 * kA, odd_a, m[5]));
  }
};

// The same for the gradient of the results (A).
struct ResultGradientMap {
  static constexpr int kIn = 4, kOut = 6;
  HWY_INLINE static void apply(const V* d, V* out) {
    namespace hn = hwy::HWY_NAMESPACE;
    const V even_a = plus(kA2, d[2], d[0]), odd_a = times(kA, plus(kA2, d[3], d[1]));
    const V even_b = plus(kB2, d[2], d[0]), odd_b = times(kB, plus(kB2, d[3], d[1]));
    out[0] = d[0];
    out[1] = hn::Add(even_a, odd_a);
    out[2] = hn::Sub(even_a, odd_a);
    out[3] = hn::Add(even_b, odd_b);
    out[4] = hn::Sub(even_b, odd_b);
    out[5] = d[3];
  }
};

// A window's values at the points (G).
struct WindowMap {
  static constexpr int kIn = 3, kOut = 6;
  HWY_INLINE static void apply(const V* g, V* out) {
    namespace hn = hwy::HWY_NAMESPACE;
    const V even_a = times(kAtA, plus(kA2, g[2], g[0])), odd_a = times(kAtA * kA, g[1]);
    const V even_b = times(kAtB, plus(kB2, g[2], g[0])), odd_b = times(kAtB * kB, g[1]);
    out[0] = times(kAtZero, g[0]);
    out[1] = hn::Add(even_a, odd_a);
    out[2] = hn::Sub(even_a, odd_a);
    out[3] = hn::Add(even_b, odd_b);
    out[4] = hn::Sub(even_b, odd_b);
    out[5] = g[2];
  }
};

// The window's gradient from that of its values (Gᵀ).
struct WindowGradientMap {
  static constexpr int kIn = 6, kOut = 3;
  HWY_INLINE static void apply(const V* s, V* out) {
    namespace hn = hwy::HWY_NAMESPACE;
    const V even_a = times(kAtA, hn::Add(s[1], s[2])), odd_a = times(kAtA, hn::Sub(s[1], s[2]));
    const V even_b = times(kAtB, hn::Add(s[3], s[4])), odd_b = times(kAtB, hn::Sub(s[3], s[4]));
    out[0] = plus(kAtZero, s[0], hn::Add(even_a, even_b));
    out[1] = plus(kB, odd_b, times(kA, odd_a));
    out[2] = plus(kB2, even_b, plus(kA2, even_a, s[5]));
  }
};

// Maps rows and columns of a square: load(row, col) → store(row, col, vector).
template <typename Map, typename Load, typename Store>
HWY_INLINE void map_square(const Load& load, const Store& store) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr int kIn = Map::kIn, kOut = Map::kOut;
  const Floats d;
  HWY_ALIGN float piece[kOut * kIn * kLanes];
  KOLO_UNROLL(6)
  for (int col = 0; col < kIn; ++col) {
    V in[kIn], out[kOut];
    KOLO_UNROLL(6)
    for (int row = 0; row < kIn; ++row) in[row] = load(row, col);
    Map::apply(in, out);
    KOLO_UNROLL(6)
    for (int row = 0; row < kOut; ++row) hn::Store(out[row], d, piece + (row * kIn + col) * kLanes);
  }
  KOLO_UNROLL(6)
  for (int row = 0; row < kOut; ++row) {
    V in[kIn], out[kOut];
    KOLO_UNROLL(6)
    for (int col = 0; col < kIn; ++col) in[col] = hn::Load(d, piece + (row * kIn + col) * kLanes);
    Map::apply(in, out);
    KOLO_UNROLL(6)
    for (int col = 0; col < kOut; ++col) store(row, col, out[col]);
  }
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KOLO_WINOGRAD_MAPS_INL_H
