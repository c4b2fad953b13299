// The exponential function of a vector, for the files that are compiled once for each instruction set.
// No #pragma once: foreach_target.h includes those files, and so this one, several times.
#if defined(KOLO_EXPONENTIAL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KOLO_EXPONENTIAL_INL_H
#undef KOLO_EXPONENTIAL_INL_H
#else
#define KOLO_EXPONENTIAL_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

/// eˣ of floats, to about two units in the last place; NaN stays NaN. Below −87 it is 0 instead of a number
/// that is no normal one, above 88 it stays at e⁸⁸, which is finite.
template <typename D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> exponential(D d, hwy::HWY_NAMESPACE::Vec<D> x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> integers;
  const auto least = hn::Set(d, -87.0f), in_range = hn::Max(hn::Min(x, hn::Set(d, 88.0f)), least);
  // x = n · ln 2 + r with |r| ≤ ln 2 / 2. The first part of ln 2 has few bits: n times it is exact.
  const auto n = hn::Round(hn::Mul(in_range, hn::Set(d, 1.44269504f)));
  const auto r =
      hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), hn::NegMulAdd(n, hn::Set(d, 0.693359375f), in_range));
  // The series of eʳ: what is left out is r⁸ / 8! < 6e-9.
  auto power = hn::MulAdd(r, hn::Set(d, 1.0f / 5040), hn::Set(d, 1.0f / 720));
  power = hn::MulAdd(r, power, hn::Set(d, 1.0f / 120));
  power = hn::MulAdd(r, power, hn::Set(d, 1.0f / 24));
  power = hn::MulAdd(r, power, hn::Set(d, 1.0f / 6));
  power = hn::MulAdd(r, power, hn::Set(d, 0.5f));
  power = hn::MulAdd(r, power, hn::Set(d, 1.0f));
  power = hn::MulAdd(r, power, hn::Set(d, 1.0f));
  // Times 2ⁿ: in this range the exponent stays that of a normal number.
  const auto exponent = hn::ShiftLeft<23>(hn::ConvertTo(integers, n));
  const auto y = hn::BitCast(d, hn::Add(hn::BitCast(integers, power), exponent));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElseZero(hn::Ge(x, least), y));
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
