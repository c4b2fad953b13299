// The exponential function of a vector, for the files that are compiled once for each instruction set.
// No #pragma once: foreach_target.h includes those files, and so this one, several times.
#if defined(KOLO_EXPONENTIAL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KOLO_EXPONENTIAL_INL_H
#undef KOLO_EXPONENTIAL_INL_H
#else
#define KOLO_EXPONENTIAL_INL_H
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

/// eˣ for x up to 88; NaN stays NaN, and what would be less than the smallest normal float is 0.
template <typename D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> exponential(D d, hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto least = hn::Set(d, -87);
  // Highway's function has no NaN.
  const auto power = hn::IfThenElseZero(hn::Ge(x, least), hn::Exp(d, hn::Max(x, least)));
  return hn::IfThenElse(hn::IsNaN(x), x, power);
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
