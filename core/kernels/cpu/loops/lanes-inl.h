// A vector of numbers that formulas treat as one number: its operators, and the functions of
// elements/numbers.h. It has no include guard but Highway's: each instruction set has its own.
#if defined(KOLO_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KOLO_LANES_INL_H
#undef KOLO_LANES_INL_H
#else
#define KOLO_LANES_INL_H
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename D>
struct Lanes {
  using T = hn::TFromD<D>;
  hn::Vec<D> v;

  Lanes() = default;
  HWY_INLINE Lanes(hn::Vec<D> lanes) : v(lanes) {}
  HWY_INLINE Lanes(T x) : v(hn::Set(D(), x)) {}

  HWY_INLINE friend Lanes operator+(Lanes a, Lanes b) { return hn::Add(a.v, b.v); }
  HWY_INLINE friend Lanes operator-(Lanes a, Lanes b) { return hn::Sub(a.v, b.v); }
  HWY_INLINE friend Lanes operator*(Lanes a, Lanes b) { return hn::Mul(a.v, b.v); }
  HWY_INLINE friend Lanes operator/(Lanes a, Lanes b) { return hn::Div(a.v, b.v); }
  HWY_INLINE Lanes& operator+=(Lanes b) { return *this = *this + b; }
  HWY_INLINE Lanes& operator-=(Lanes b) { return *this = *this - b; }

  HWY_INLINE friend Lanes absolute(Lanes x) { return hn::Abs(x.v); }
  HWY_INLINE friend Lanes square_root(Lanes x) { return hn::Sqrt(x.v); }
  HWY_INLINE friend Lanes copy_sign(Lanes x, Lanes sign) { return hn::CopySign(x.v, sign.v); }
  HWY_INLINE friend Lanes where_greater(Lanes a, Lanes b, Lanes yes, Lanes no) {
    return hn::IfThenElse(hn::Gt(a.v, b.v), yes.v, no.v);
  }
  // The library's, lane by lane.
  HWY_NOINLINE friend Lanes power(Lanes x, T exponent) {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(x.v, D(), lanes);
    for (std::size_t k = 0; k < hn::Lanes(D()); ++k) lanes[k] = std::pow(lanes[k], exponent);
    return hn::Load(D(), lanes);
  }
};

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
