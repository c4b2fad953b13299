// The linear maps of Winograd's algorithms F(4 × 4, 3 × 3) and F(2 × 2, 5 × 5), of vectors that hold a number
// of each channel of a block, for the files that are compiled once for each instruction set. No #pragma once:
// foreach_target.h includes those files, and so this one, several times.
#if defined(KOLO_WINOGRAD_MAPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KOLO_WINOGRAD_MAPS_INL_H
#undef KOLO_WINOGRAD_MAPS_INL_H
#else
#define KOLO_WINOGRAD_MAPS_INL_H
#endif

#include <hwy/highway.h>

#include <kolo/core/kernels/cpu/conv/block_tiles-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

// Results and window are polynomials; an image's pixels are as many as their product has coefficients, 6, and
// the product is known by its values at as many points: 0, ±a, ±b and ∞. These lose fewer digits than 0, ±1,
// ±2: of random images and windows the results are off by 4e-7 to 2e-6 of their size, with 16 to 512
// channels. They are oneDNN's.
constexpr float kA = 5.0f / 8, kB = 3.0f / 2, kA2 = kA * kA, kB2 = kB * kB;
// What a window's values are divided by: the products of the differences between a point and the others.
constexpr float kAtZero = 1 / (kA2 * kB2), kAtA = 1 / (2 * kA2 * (kA2 - kB2)),
                kAtB = 1 / (2 * kB2 * (kB2 - kA2));
constexpr int kPatch = 6;

HWY_INLINE V times(float factor, V x) { return hn::Mul(hn::Set(Floats(), factor), x); }
// factor · x + y
HWY_INLINE V plus(float factor, V x, V y) { return hn::MulAdd(hn::Set(Floats(), factor), x, y); }

// An image's pixels → what is multiplied at the points (Bᵀ of the paper).
struct ImageMap {
  static constexpr int kIn = kPatch, kOut = kPatch;
  HWY_INLINE static void apply(const V* d, V* out) {
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

// kCount coefficients → values at the points: of results' gradients (A), and, divided, of windows (G).
template <int kCount, bool kDivided>
struct ValueMap {
  static constexpr int kIn = kCount, kOut = kPatch;
  HWY_INLINE static void apply(const V* c, V* out) {
    out[0] = kDivided ? times(kAtZero, c[0]) : c[0];
    at(c, kA, kAtA, out[1], out[2]);
    at(c, kB, kAtB, out[3], out[4]);
    out[5] = c[kCount - 1];
  }

 private:
  HWY_INLINE static void at(const V* c, float point, float divided, V& plus_point, V& minus_point) {
    const float square = point * point;
    V even = c[0], odd = c[1];
    if constexpr (kCount == 3 || kCount == 4) even = plus(square, c[2], even);
    if constexpr (kCount == 5) even = plus(square, plus(square, c[4], c[2]), even);
    if constexpr (kCount >= 4) odd = plus(square, c[3], odd);
    if constexpr (kDivided) even = times(divided, even);
    odd = times(kDivided ? divided * point : point, odd);
    plus_point = hn::Add(even, odd);
    minus_point = hn::Sub(even, odd);
  }
};

// And its transpose: products at the points → results (Aᵀ), the gradient of windows' values → of windows
// (Gᵀ).
template <int kCount, bool kDivided>
struct CoefficientMap {
  static constexpr int kIn = kPatch, kOut = kCount;
  HWY_INLINE static void apply(const V* m, V* out) {
    V even_a = hn::Add(m[1], m[2]), odd_a = hn::Sub(m[1], m[2]);
    V even_b = hn::Add(m[3], m[4]), odd_b = hn::Sub(m[3], m[4]);
    if constexpr (kDivided) {
      even_a = times(kAtA, even_a), odd_a = times(kAtA, odd_a);
      even_b = times(kAtB, even_b), odd_b = times(kAtB, odd_b);
    }
    const V even = hn::Add(even_a, even_b);
    out[0] = kDivided ? plus(kAtZero, m[0], even) : hn::Add(m[0], even);
    float a = kA, b = kB;
    KOLO_UNROLL(4)
    for (int i = 1; i < kCount; ++i, a *= kA, b *= kB) {
      const V first = times(a, i % 2 == 0 ? even_a : odd_a);
      out[i] = plus(b, i % 2 == 0 ? even_b : odd_b, i + 1 == kCount ? hn::Add(first, m[5]) : first);
    }
  }
};

// Maps rows and columns of a square: load(row, col) → store(row, col, vector).
template <typename Map, typename Load, typename Store>
HWY_INLINE void map_square(const Load& load, const Store& store) {
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
