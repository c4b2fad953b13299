// What the element-wise reductions are made of, for one instruction set at a time: sources that Highway
// compiles once for each include it between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE's files.
#if defined(KOLO_COLLECTIVES_DETAIL_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KOLO_COLLECTIVES_DETAIL_REDUCE_INL_H_
#undef KOLO_COLLECTIVES_DETAIL_REDUCE_INL_H_
#else
#define KOLO_COLLECTIVES_DETAIL_REDUCE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include <kolo/collectives/reduce/reduce_op.h>
#include <kolo/core/tensor/dtype.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <ReduceOp kOp, class D, class V>
HWY_INLINE V combine(D, V a, V b) {
  if constexpr (kOp == ReduceOp::product) return hn::Mul(a, b);
  else if constexpr (kOp == ReduceOp::min || kOp == ReduceOp::max) {
    // The processor's min and max return their second operand where one is NaN.
    const auto value = kOp == ReduceOp::min ? hn::Min(a, b) : hn::Max(a, b);
    return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, value));
  } else {
    return hn::Add(a, b);
  }
}

// How one vector of f32 or f64 is read from memory and written to it, rounding to nearest even.
template <typename T>
struct Lanes {
  using D = hn::ScalableTag<T>;
  static HWY_INLINE hn::VFromD<D> load(const T* from) { return hn::LoadU(D(), from); }
  static HWY_INLINE void store(hn::VFromD<D> v, T* to) { hn::StoreU(v, D(), to); }
};
template <>
struct Lanes<Half> {
  using D = hn::ScalableTag<float>;
  using D16 = hn::Rebind<hwy::float16_t, D>;
  static HWY_INLINE hn::VFromD<D> load(const Half* from) {
    return hn::PromoteTo(D(), hn::LoadU(D16(), reinterpret_cast<const hwy::float16_t*>(from)));
  }
  static HWY_INLINE void store(hn::VFromD<D> v, Half* to) {
    hn::StoreU(hn::DemoteTo(D16(), v), D16(), reinterpret_cast<hwy::float16_t*>(to));
  }
};
template <>
struct Lanes<BFloat16> {
  using D = hn::ScalableTag<float>;
  using DU = hn::RebindToUnsigned<D>;
  using DI = hn::RebindToSigned<D>;
  using D16 = hn::Rebind<std::uint16_t, D>;
  static HWY_INLINE hn::VFromD<D> load(const BFloat16* from) {
    const auto bits = hn::LoadU(D16(), reinterpret_cast<const std::uint16_t*>(from));
    return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(DU(), bits)));
  }
  // Highway's own conversion cuts the lower bits off.
  static HWY_INLINE void store(hn::VFromD<D> v, BFloat16* to) {
    const auto bits = hn::BitCast(DU(), v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(DU(), 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(DU(), 0x7fff))));
    const auto quiet_nan =
        hn::Or(hn::ShiftRight<16>(bits), hn::Set(DU(), 0x40));  // rounding could make it inf
    const auto upper = hn::IfThenElse(hn::RebindMask(DU(), hn::IsNaN(v)), quiet_nan, rounded);
    hn::StoreU(hn::DemoteTo(D16(), hn::BitCast(DI(), upper)), D16(), reinterpret_cast<std::uint16_t*>(to));
  }
};

// The compiler vectorises these for the instruction set at hand; Highway lacks products of some integers.
template <ReduceOp kOp, typename T, typename Wide>
void reduce_integers(T* dst, const T* src, std::int64_t elements) {
  for (std::int64_t i = 0; i < elements; ++i) {
    const T a = dst[i], b = src[i];
    if constexpr (kOp == ReduceOp::min) dst[i] = a < b ? a : b;
    else if constexpr (kOp == ReduceOp::max) dst[i] = a > b ? a : b;
    else if constexpr (kOp == ReduceOp::product)
      dst[i] = static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    else dst[i] = static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));  // unsigned: wraps
  }
}

}  // namespace kolo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once for each instruction set
