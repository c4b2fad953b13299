#include <kolo/core/kernels/cpu/loops/blocked_loops.h>

#include <algorithm>
#include <cstddef>

#include <kolo/core/kernels/cpu/loops/each_target-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Pixels whose sums are taken in float: 64 additions to each of kSums sums.
constexpr std::int64_t kPiece = 256;
constexpr std::int64_t kSums = 4;  // sums side by side: an addition waits for the one before it

// What is read and written is asked for 2 KiB ahead, as a processor's own foresight ends with each page. From
// memory, 8 images of 256 channels at 56 × 56 (Xeon, family 6 model 167): normalized in 3.9 → 3.5 ms, from
// their statistics in 3.6 → 3.3, their gradient in 5.7 → 5.4. Stores that pass the caches take 2.4 of the 3.6
// ms, but who reads the images next waits for longer than that.
constexpr std::int64_t kAhead = 512;
HWY_INLINE void ask_ahead(const float* x) { __builtin_prefetch(x + kAhead); }

// A vector never reaches beyond a block; a block may be several vectors.
template <int kBlock>
using Tag = hn::CappedTag<float, kBlock>;
template <int kBlock>
using Vector = hn::Vec<Tag<kBlock>>;

template <int kBlock>
void add_to(double* totals, Vector<kBlock> sums) {
  const Tag<kBlock> d;
  HWY_ALIGN float lanes[kBlock];
  hn::Store(sums, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) totals[i] += lanes[i];
}

// Calls visit(pixel, a, b), which adds to the two sums of one vector of each pixel; adds both to the totals.
template <int kBlock, typename Visit>
HWY_INLINE void sum_twice(std::int64_t pixels, double* a_total, double* b_total, const Visit& visit) {
  const Tag<kBlock> d;
  for (std::int64_t from = 0; from < pixels; from += kPiece) {
    const std::int64_t to = std::min(from + kPiece, pixels);
    auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
    std::int64_t i = from;
    for (; i + kSums <= to; i += kSums) {
      visit(i, a0, b0);
      visit(i + 1, a1, b1);
      visit(i + 2, a2, b2);
      visit(i + 3, a3, b3);
    }
    for (; i < to; ++i) visit(i, a0, b0);
    add_to<kBlock>(a_total, hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)));
    add_to<kBlock>(b_total, hn::Add(hn::Add(b0, b1), hn::Add(b2, b3)));
  }
}

// Structs and not lambdas: g++ compiles a lambda without the instruction set of the function around it.
template <int kBlock>
struct Moments {
  const float* x;
  Vector<kBlock> center;
  HWY_INLINE void operator()(std::int64_t pixel, Vector<kBlock>& sum, Vector<kBlock>& square) const {
    ask_ahead(x + pixel * kBlock);
    const auto z = hn::Sub(hn::LoadU(Tag<kBlock>(), x + pixel * kBlock), center);
    sum = hn::Add(sum, z);
    square = hn::MulAdd(z, z, square);
  }
};

template <int kBlock>
void moments(const float* x, const float* center, std::int64_t pixels, std::int64_t, double* sums,
             double* squares) {
  const Tag<kBlock> d;
  std::fill_n(sums, kBlock, 0.0);
  std::fill_n(squares, kBlock, 0.0);
  for (std::size_t j = 0; j < kBlock; j += hn::Lanes(d))
    sum_twice<kBlock>(pixels, sums + j, squares + j, Moments<kBlock>{x + j, hn::LoadU(d, center + j)});
}

template <int kBlock, bool kAdded, bool kRelu>
void affine_as(const float* x, const float* center, const float* factor, const float* shift,
               const float* added, float* y, std::int64_t pixels) {
  const Tag<kBlock> d;
  for (std::size_t j = 0; j < kBlock; j += hn::Lanes(d)) {
    const auto c = hn::LoadU(d, center + j), f = hn::LoadU(d, factor + j), s = hn::LoadU(d, shift + j);
    for (std::int64_t i = 0; i < pixels; ++i) {
      const std::int64_t at = i * kBlock + static_cast<std::int64_t>(j);
      ask_ahead(x + at);
      if constexpr (kAdded) ask_ahead(added + at);
      ask_ahead(y + at);
      auto value = hn::MulAdd(hn::Sub(hn::LoadU(d, x + at), c), f, s);
      if constexpr (kAdded) value = hn::Add(value, hn::LoadU(d, added + at));
      if constexpr (kRelu) value = hn::IfThenZeroElse(hn::Lt(value, hn::Zero(d)), value);
      hn::StoreU(value, d, y + at);
    }
  }
}

template <int kBlock>
void affine(const float* x, const float* center, const float* factor, const float* shift, const float* added,
            bool relu, float* y, std::int64_t pixels, std::int64_t) {
  const auto loop = added != nullptr
                        ? (relu ? affine_as<kBlock, true, true> : affine_as<kBlock, true, false>)
                        : (relu ? affine_as<kBlock, false, true> : affine_as<kBlock, false, false>);
  loop(x, center, factor, shift, added, y, pixels);
}

// What a rectifier's mask follows from.
enum class Mask { none, y, x };

template <int kBlock, Mask kMask>
struct MaskOfX {
  HWY_INLINE MaskOfX(const BlockedGradient<float>& g, std::size_t channel) {
    const Tag<kBlock> d;
    factor = kMask == Mask::x ? hn::LoadU(d, g.factor + channel) : hn::Zero(d);
    shift = kMask == Mask::x ? hn::LoadU(d, g.shift + channel) : hn::Zero(d);
  }
  Vector<kBlock> factor, shift;
};

// z: x − center.
template <int kBlock, bool kSecond, Mask kMask>
HWY_INLINE Vector<kBlock> gradient_at(const BlockedGradient<float>& g, std::int64_t at, Vector<kBlock> z,
                                      const MaskOfX<kBlock, kMask>& of_x) {
  const Tag<kBlock> d;
  ask_ahead(g.first + at);
  auto value = hn::LoadU(d, g.first + at);
  if constexpr (kSecond) value = hn::Add(value, hn::LoadU(d, g.second + at));
  if constexpr (kMask == Mask::y)
    value = hn::IfThenElseZero(hn::Gt(hn::LoadU(d, g.y + at), hn::Zero(d)), value);
  if constexpr (kMask == Mask::x)  // rounded as in affine_as
    value = hn::IfThenElseZero(hn::Gt(hn::MulAdd(z, of_x.factor, of_x.shift), hn::Zero(d)), value);
  return value;
}

template <int kBlock, bool kSecond, Mask kMask>
struct GradientSums {
  const BlockedGradient<float>& g;
  const float* x;
  Vector<kBlock> center;
  MaskOfX<kBlock, kMask> of_x;
  float* kept;
  std::int64_t first_channel;
  HWY_INLINE void operator()(std::int64_t pixel, Vector<kBlock>& sum, Vector<kBlock>& product) const {
    const Tag<kBlock> d;
    const std::int64_t at = pixel * kBlock + first_channel;
    ask_ahead(x + at);
    const auto z = hn::Sub(hn::LoadU(d, x + at), center);
    const auto value = gradient_at<kBlock, kSecond, kMask>(g, at, z, of_x);
    if (kept != nullptr) hn::StoreU(value, d, kept + at);
    sum = hn::Add(sum, value);
    product = hn::MulAdd(value, z, product);
  }
};

template <int kBlock, bool kSecond, Mask kMask>
void gradient_sums_as(const BlockedGradient<float>& g, const float* x, const float* center, float* kept,
                      std::int64_t pixels, double* sums, double* products) {
  const Tag<kBlock> d;
  std::fill_n(sums, kBlock, 0.0);
  std::fill_n(products, kBlock, 0.0);
  for (std::size_t j = 0; j < kBlock; j += hn::Lanes(d))
    sum_twice<kBlock>(pixels, sums + j, products + j,
                      GradientSums<kBlock, kSecond, kMask>{
                          g, x, hn::LoadU(d, center + j), {g, j}, kept, static_cast<std::int64_t>(j)});
}

template <int kBlock, bool kSecond, Mask kMask>
void gradient_as(const BlockedGradient<float>& g, const float* x, const float* center, const float* factor,
                 const float* a, const float* b, float* dx, std::int64_t pixels) {
  const Tag<kBlock> d;
  for (std::size_t j = 0; j < kBlock; j += hn::Lanes(d)) {
    const auto c = hn::LoadU(d, center + j), f = hn::LoadU(d, factor + j), of_mean = hn::LoadU(d, a + j),
               of_product = hn::LoadU(d, b + j);
    const MaskOfX<kBlock, kMask> of_x(g, j);
    for (std::int64_t i = 0; i < pixels; ++i) {
      const std::int64_t at = i * kBlock + static_cast<std::int64_t>(j);
      ask_ahead(x + at);
      ask_ahead(dx + at);
      const auto z = hn::Sub(hn::LoadU(d, x + at), c);
      const auto value = hn::Sub(gradient_at<kBlock, kSecond, kMask>(g, at, z, of_x), of_mean);
      hn::StoreU(hn::Mul(f, hn::NegMulAdd(of_product, z, value)), d, dx + at);
    }
  }
}

template <int kBlock, Mask kMask>
void gradient_sums_with(const BlockedGradient<float>& g, const float* x, const float* center, float* kept,
                        std::int64_t pixels, double* sums, double* products) {
  const auto loop =
      g.second != nullptr ? gradient_sums_as<kBlock, true, kMask> : gradient_sums_as<kBlock, false, kMask>;
  loop(g, x, center, kept, pixels, sums, products);
}
template <int kBlock>
void gradient_sums(const BlockedGradient<float>& g, const float* x, const float* center, float* kept,
                   std::int64_t pixels, std::int64_t, double* sums, double* products) {
  const auto loop = g.factor != nullptr ? gradient_sums_with<kBlock, Mask::x>
                    : g.y != nullptr    ? gradient_sums_with<kBlock, Mask::y>
                                        : gradient_sums_with<kBlock, Mask::none>;
  loop(g, x, center, kept, pixels, sums, products);
}

template <int kBlock, Mask kMask>
void gradient_with(const BlockedGradient<float>& g, const float* x, const float* center, const float* factor,
                   const float* a, const float* b, float* dx, std::int64_t pixels) {
  const auto loop =
      g.second != nullptr ? gradient_as<kBlock, true, kMask> : gradient_as<kBlock, false, kMask>;
  loop(g, x, center, factor, a, b, dx, pixels);
}
template <int kBlock>
void gradient(const BlockedGradient<float>& g, const float* x, const float* center, const float* factor,
              const float* a, const float* b, float* dx, std::int64_t pixels, std::int64_t) {
  const auto loop = g.factor != nullptr ? gradient_with<kBlock, Mask::x>
                    : g.y != nullptr    ? gradient_with<kBlock, Mask::y>
                                        : gradient_with<kBlock, Mask::none>;
  loop(g, x, center, factor, a, b, dx, pixels);
}

template <int kBlock>
BlockedLoops<float> loops() {
  return {moments<kBlock>, affine<kBlock>, gradient_sums<kBlock>, gradient<kBlock>};
}
BlockedLoops<float> loops_of_8() { return loops<8>(); }
BlockedLoops<float> loops_of_16() { return loops<16>(); }

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo::detail {

HWY_EXPORT(loops_of_8);
HWY_EXPORT(loops_of_16);

const BlockedLoops<float>& blocked_loops(std::int64_t block) {
  static const BlockedLoops<float> of_8 = HWY_DYNAMIC_DISPATCH(loops_of_8)();
  static const BlockedLoops<float> of_16 = HWY_DYNAMIC_DISPATCH(loops_of_16)();
  return block == 8 ? of_8 : of_16;
}

}  // namespace kolo::detail
#endif
