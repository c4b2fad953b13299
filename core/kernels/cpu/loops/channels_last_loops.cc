// The loops of blocked_loops.h over planes whose pixels have all channels: in the order of memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <kolo/core/kernels/cpu/loops/blocked_loops.h>

#include <kolo/core/kernels/cpu/loops/each_target-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;  // a pixel's channels are a multiple of 16
using Vector = hn::Vec<D>;

// Sums of so many pixels are taken in float, of kSide pixels next to each other before they are added to
// what is there. The sums of kChannels channels are in the first cache.
constexpr std::int64_t kPiece = 256;
constexpr std::int64_t kSide = 4;
constexpr std::int64_t kChannels = 512;

HWY_INLINE Vector load(const float* from) { return hn::LoadU(D(), from); }
HWY_INLINE void store(Vector v, float* to) { hn::StoreU(v, D(), to); }

// bf16 is the upper half of a float.
HWY_INLINE Vector load(const BFloat16* from) {
  const D d;
  const hn::Rebind<std::uint16_t, D> halves;
  const hn::RebindToUnsigned<D> words;
  const auto bits = hn::LoadU(halves, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, bits)));
}
// As bfloat16_bits (core/tensor/small_float.h): to nearest even; a NaN stays one.
HWY_INLINE void store(Vector v, BFloat16* to) {
  const hn::Rebind<std::uint16_t, D> halves;
  const hn::RebindToUnsigned<D> words;
  const hn::RebindToSigned<D> numbers;
  const auto bits = hn::BitCast(words, v), odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1u)),
             rounded = hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7fffu))),
             of_nan = hn::Or(bits, hn::Set(words, 0x400000u));
  const auto chosen = hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(v)), of_nan, rounded);
  const auto upper = hn::BitCast(numbers, hn::ShiftRight<16>(chosen));
  hn::StoreU(hn::DemoteTo(halves, upper), halves, reinterpret_cast<std::uint16_t*>(to));
}

// Structs and not lambdas: g++ compiles a lambda without the instruction set of the function around it.
template <typename T>
struct Moments {
  const T* x;
  const float* center;
  // Adds an element's part of the two sums: `at` is where it lies, `channel` whose it is.
  HWY_INLINE void operator()(std::int64_t at, std::int64_t channel, Vector& sum, Vector& square) const {
    const auto z = hn::Sub(load(x + at), load(center + channel));
    sum = hn::Add(sum, z);
    square = hn::MulAdd(z, z, square);
  }
};

// first = Σ and second = Σ of what `part` adds, for `block` channels.
template <typename Part>
HWY_INLINE void sum_twice(std::int64_t pixels, std::int64_t block, double* first, double* second,
                          const Part& part) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float sums[kChannels], others[kChannels];
  std::fill_n(first, block, 0.0);
  std::fill_n(second, block, 0.0);
  for (std::int64_t from = 0; from < block; from += kChannels) {
    const std::int64_t count = std::min(kChannels, block - from);
    for (std::int64_t begin = 0; begin < pixels; begin += kPiece) {
      const std::int64_t end = std::min(begin + kPiece, pixels);
      std::fill_n(sums, count, 0.0f);
      std::fill_n(others, count, 0.0f);
      std::int64_t pixel = begin;
      for (; pixel + kSide <= end; pixel += kSide)
        for (std::int64_t c = 0; c < count; c += lanes) {
          auto a0 = hn::Zero(d), b0 = a0, a1 = a0, b1 = a0;
          const std::int64_t at = pixel * block + from + c;
          part(at, from + c, a0, b0);
          part(at + block, from + c, a1, b1);
          part(at + 2 * block, from + c, a0, b0);
          part(at + 3 * block, from + c, a1, b1);
          hn::Store(hn::Add(hn::Load(d, sums + c), hn::Add(a0, a1)), d, sums + c);
          hn::Store(hn::Add(hn::Load(d, others + c), hn::Add(b0, b1)), d, others + c);
        }
      for (; pixel < end; ++pixel)
        for (std::int64_t c = 0; c < count; c += lanes) {
          auto a = hn::Load(d, sums + c), b = hn::Load(d, others + c);
          part(pixel * block + from + c, from + c, a, b);
          hn::Store(a, d, sums + c);
          hn::Store(b, d, others + c);
        }
      for (std::int64_t c = 0; c < count; ++c) first[from + c] += sums[c], second[from + c] += others[c];
    }
  }
}

template <typename T>
void moments(const T* x, const float* center, std::int64_t pixels, std::int64_t block, double* sums,
             double* squares) {
  sum_twice(pixels, block, sums, squares, Moments<T>{x, center});
}

template <typename T, bool kAdded, bool kRelu>
void affine_as(const T* x, const float* center, const float* factor, const float* shift, const T* added, T* y,
               std::int64_t pixels, std::int64_t block) {
  const D d;
  for (std::int64_t i = 0; i < pixels; ++i)
    for (std::int64_t c = 0; c < block; c += static_cast<std::int64_t>(hn::Lanes(d))) {
      const std::int64_t at = i * block + c;
      auto value = hn::MulAdd(hn::Sub(load(x + at), load(center + c)), load(factor + c), load(shift + c));
      if constexpr (kAdded) value = hn::Add(value, load(added + at));
      if constexpr (kRelu) value = hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value);
      store(value, y + at);
    }
}

template <typename T>
void affine(const T* x, const float* center, const float* factor, const float* shift, const T* added,
            bool relu, T* y, std::int64_t pixels, std::int64_t block) {
  const auto loop = added != nullptr ? (relu ? affine_as<T, true, true> : affine_as<T, true, false>)
                                     : (relu ? affine_as<T, false, true> : affine_as<T, false, false>);
  loop(x, center, factor, shift, added, y, pixels, block);
}

// What a rectifier's mask follows from.
enum class Mask { none, y, x };

// The largest number that is stored as 0, of those above 0: of bf16 half of the smallest, which is rounded to
// even.
template <typename T>
constexpr float kStoredAs0 = std::is_same_v<T, BFloat16> ? 0x1p-134f : 0;

// z: x − center.
template <typename T, bool kSecond, Mask kMask>
HWY_INLINE Vector gradient_at(const BlockedGradient<T>& g, std::int64_t at, std::int64_t channel, Vector z) {
  const D d;
  auto value = load(g.first + at);
  if constexpr (kSecond) value = hn::Add(value, load(g.second + at));
  if constexpr (kMask == Mask::y) value = hn::IfThenElseZero(hn::Gt(load(g.y + at), hn::Zero(d)), value);
  if constexpr (kMask == Mask::x) {  // rounded as in affine_as
    const auto y = hn::MulAdd(z, load(g.factor + channel), load(g.shift + channel));
    value = hn::IfThenElseZero(hn::Gt(y, hn::Set(d, kStoredAs0<T>)), value);
  }
  return value;
}

template <typename T, bool kSecond, Mask kMask>
struct GradientSums {
  const BlockedGradient<T>& g;
  const T* x;
  const float* center;
  T* kept;
  HWY_INLINE void operator()(std::int64_t at, std::int64_t channel, Vector& sum, Vector& product) const {
    const auto z = hn::Sub(load(x + at), load(center + channel));
    const auto value = gradient_at<T, kSecond, kMask>(g, at, channel, z);
    if (kept != nullptr) store(value, kept + at);
    sum = hn::Add(sum, value);
    product = hn::MulAdd(value, z, product);
  }
};

template <typename T, bool kSecond, Mask kMask>
void gradient_sums_as(const BlockedGradient<T>& g, const T* x, const float* center, T* kept,
                      std::int64_t pixels, std::int64_t block, double* sums, double* products) {
  sum_twice(pixels, block, sums, products, GradientSums<T, kSecond, kMask>{g, x, center, kept});
}

template <typename T, bool kSecond, Mask kMask>
void gradient_as(const BlockedGradient<T>& g, const T* x, const float* center, const float* factor,
                 const float* a, const float* b, T* dx, std::int64_t pixels, std::int64_t block) {
  const D d;
  for (std::int64_t i = 0; i < pixels; ++i)
    for (std::int64_t c = 0; c < block; c += static_cast<std::int64_t>(hn::Lanes(d))) {
      const std::int64_t at = i * block + c;
      const auto z = hn::Sub(load(x + at), load(center + c));
      const auto value = hn::Sub(gradient_at<T, kSecond, kMask>(g, at, c, z), load(a + c));
      store(hn::Mul(load(factor + c), hn::NegMulAdd(load(b + c), z, value)), dx + at);
    }
}

template <typename T, Mask kMask>
void gradient_sums_with(const BlockedGradient<T>& g, const T* x, const float* center, T* kept,
                        std::int64_t pixels, std::int64_t block, double* sums, double* products) {
  const auto loop =
      g.second != nullptr ? gradient_sums_as<T, true, kMask> : gradient_sums_as<T, false, kMask>;
  loop(g, x, center, kept, pixels, block, sums, products);
}
template <typename T>
void gradient_sums(const BlockedGradient<T>& g, const T* x, const float* center, T* kept, std::int64_t pixels,
                   std::int64_t block, double* sums, double* products) {
  const auto loop = g.factor != nullptr ? gradient_sums_with<T, Mask::x>
                    : g.y != nullptr    ? gradient_sums_with<T, Mask::y>
                                        : gradient_sums_with<T, Mask::none>;
  loop(g, x, center, kept, pixels, block, sums, products);
}

template <typename T, Mask kMask>
void gradient_with(const BlockedGradient<T>& g, const T* x, const float* center, const float* factor,
                   const float* a, const float* b, T* dx, std::int64_t pixels, std::int64_t block) {
  const auto loop = g.second != nullptr ? gradient_as<T, true, kMask> : gradient_as<T, false, kMask>;
  loop(g, x, center, factor, a, b, dx, pixels, block);
}
template <typename T>
void gradient(const BlockedGradient<T>& g, const T* x, const float* center, const float* factor,
              const float* a, const float* b, T* dx, std::int64_t pixels, std::int64_t block) {
  const auto loop = g.factor != nullptr ? gradient_with<T, Mask::x>
                    : g.y != nullptr    ? gradient_with<T, Mask::y>
                                        : gradient_with<T, Mask::none>;
  loop(g, x, center, factor, a, b, dx, pixels, block);
}

BlockedLoops<float> channels_last_of_f32() {
  return {moments<float>, affine<float>, gradient_sums<float>, gradient<float>};
}
BlockedLoops<BFloat16> channels_last_of_bf16() {
  return {moments<BFloat16>, affine<BFloat16>, gradient_sums<BFloat16>, gradient<BFloat16>};
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo::detail {

HWY_EXPORT(channels_last_of_f32);
HWY_EXPORT(channels_last_of_bf16);

template <>
const BlockedLoops<float>& channels_last_loops() {
  static const BlockedLoops<float> loops = HWY_DYNAMIC_DISPATCH(channels_last_of_f32)();
  return loops;
}
template <>
const BlockedLoops<BFloat16>& channels_last_loops() {
  static const BlockedLoops<BFloat16> loops = HWY_DYNAMIC_DISPATCH(channels_last_of_bf16)();
  return loops;
}

}  // namespace kolo::detail
#endif
