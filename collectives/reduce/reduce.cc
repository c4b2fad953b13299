#include <kolo/collectives/reduce/reduce.h>

#include <algorithm>
#include <cstring>

#include <kolo/core/base/error.h>

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for each instruction
// set, by including this file again, and picks one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kolo/collectives/reduce/reduce.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

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
// Where the processor does not convert to f16, Highway cuts the lower bits off, and takes infinity for a
// number.
constexpr bool kConvertsHalf = HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_SSSE3 && HWY_TARGET != HWY_SSE4;

template <>
struct Lanes<Half> {
  using D = hn::ScalableTag<float>;
  using D16 = hn::Rebind<hwy::float16_t, D>;
  static HWY_INLINE hn::VFromD<D> load(const Half* from) {
    if constexpr (kConvertsHalf) {
      return hn::PromoteTo(D(), hn::LoadU(D16(), reinterpret_cast<const hwy::float16_t*>(from)));
    } else {
      HWY_ALIGN float lanes[hn::MaxLanes(D())];
      for (std::size_t i = 0; i < hn::Lanes(D()); ++i) lanes[i] = static_cast<float>(from[i]);
      return hn::Load(D(), lanes);
    }
  }
  static HWY_INLINE void store(hn::VFromD<D> v, Half* to) {
    if constexpr (kConvertsHalf) {
      hn::StoreU(hn::DemoteTo(D16(), v), D16(), reinterpret_cast<hwy::float16_t*>(to));
    } else {
      HWY_ALIGN float lanes[hn::MaxLanes(D())];
      hn::Store(v, D(), lanes);
      for (std::size_t i = 0; i < hn::Lanes(D()); ++i) to[i] = Half(lanes[i]);
    }
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

// Calls body(index) for every full vector, then once with copies of the rest in a vector of their own.
template <typename T, typename S, class Body>
HWY_INLINE void for_each_vector(T* dst, const S* src, std::int64_t elements, const Body& body) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(typename Lanes<T>::D()));
  std::int64_t i = 0;
  for (; i + lanes <= elements; i += lanes) body(dst + i, src + i);
  if (i == elements) return;
  T dst_rest[hn::MaxLanes(typename Lanes<T>::D())] = {};
  S src_rest[hn::MaxLanes(typename Lanes<T>::D())] = {};
  for (std::int64_t k = i; k < elements; ++k) dst_rest[k - i] = dst[k], src_rest[k - i] = src[k];
  body(dst_rest, src_rest);
  for (std::int64_t k = i; k < elements; ++k) dst[k] = dst_rest[k - i];
}

template <ReduceOp kOp, typename T>
void reduce_floats(T* dst, const T* src, std::int64_t elements) {
  for_each_vector(dst, src, elements, [](T* d, const T* s) HWY_ATTR {
    Lanes<T>::store(combine<kOp>(typename Lanes<T>::D(), Lanes<T>::load(d), Lanes<T>::load(s)), d);
  });
}

template <ReduceOp kOp>
void reduce_typed(DType dtype, void* dst, const void* src, std::int64_t n) {
  constexpr ReduceOp kBoolean =
      kOp == ReduceOp::min || kOp == ReduceOp::product ? ReduceOp::min : ReduceOp::max;
  using U = std::uint32_t;  // narrower types would be promoted to int, whose overflow is undefined
  using U64 = std::uint64_t;
  switch (dtype) {
    case DType::f32: return reduce_floats<kOp>(static_cast<float*>(dst), static_cast<const float*>(src), n);
    case DType::f64: return reduce_floats<kOp>(static_cast<double*>(dst), static_cast<const double*>(src), n);
    case DType::f16: return reduce_floats<kOp>(static_cast<Half*>(dst), static_cast<const Half*>(src), n);
    case DType::bf16:
      return reduce_floats<kOp>(static_cast<BFloat16*>(dst), static_cast<const BFloat16*>(src), n);
    case DType::i32:
      return reduce_integers<kOp, std::int32_t, U>(static_cast<std::int32_t*>(dst),
                                                   static_cast<const std::int32_t*>(src), n);
    case DType::i64:
      return reduce_integers<kOp, std::int64_t, U64>(static_cast<std::int64_t*>(dst),
                                                     static_cast<const std::int64_t*>(src), n);
    case DType::u8:
      return reduce_integers<kOp, std::uint8_t, U>(static_cast<std::uint8_t*>(dst),
                                                   static_cast<const std::uint8_t*>(src), n);
    case DType::i8:
      return reduce_integers<kOp, std::int8_t, U>(static_cast<std::int8_t*>(dst),
                                                  static_cast<const std::int8_t*>(src), n);
    case DType::boolean:
      return reduce_integers<kBoolean, std::uint8_t, U>(static_cast<std::uint8_t*>(dst),
                                                        static_cast<const std::uint8_t*>(src), n);
    case DType::string: break;
  }
}

void reduce_all(ReduceOp op, DType dtype, void* dst, const void* src, std::int64_t n) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::average: return reduce_typed<ReduceOp::sum>(dtype, dst, src, n);
    case ReduceOp::min: return reduce_typed<ReduceOp::min>(dtype, dst, src, n);
    case ReduceOp::max: return reduce_typed<ReduceOp::max>(dtype, dst, src, n);
    case ReduceOp::product: return reduce_typed<ReduceOp::product>(dtype, dst, src, n);
    case ReduceOp::adasum: break;
  }
}

template <typename T>
void divide_floats(T* dst, const T* src, std::int64_t elements, double divisor) {
  using D = typename Lanes<T>::D;
  const auto by = hn::Set(D(), static_cast<hn::TFromD<D>>(divisor));
  if (src == nullptr) {
    for_each_vector(dst, const_cast<const T*>(dst), elements,
                    [&](T* d, const T*) HWY_ATTR { Lanes<T>::store(hn::Div(Lanes<T>::load(d), by), d); });
  } else {
    for_each_vector(dst, src, elements, [&](T* d, const T* s) HWY_ATTR {
      Lanes<T>::store(hn::Div(hn::Add(Lanes<T>::load(d), Lanes<T>::load(s)), by), d);
    });
  }
}

template <typename T>
void scaled_floats(T* dst, float dst_factor, const T* src, float src_factor, std::int64_t elements,
                   float divisor) {
  using D = hn::ScalableTag<float>;
  const auto d_by = hn::Set(D(), dst_factor), s_by = hn::Set(D(), src_factor), by = hn::Set(D(), divisor);
  const auto sum = [&](const T* d, const T* s) HWY_ATTR {
    return hn::Add(hn::Mul(Lanes<T>::load(d), d_by), hn::Mul(Lanes<T>::load(s), s_by));
  };
  if (divisor == 1)
    for_each_vector(dst, src, elements, [&](T* d, const T* s) HWY_ATTR { Lanes<T>::store(sum(d, s), d); });
  else
    for_each_vector(dst, src, elements,
                    [&](T* d, const T* s) HWY_ATTR { Lanes<T>::store(hn::Div(sum(d, s), by), d); });
}

void scaled_all(DType dtype, void* dst, float dst_factor, const void* src, float src_factor, std::int64_t n,
                float divisor) {
  if (dtype == DType::f16)
    scaled_floats(static_cast<Half*>(dst), dst_factor, static_cast<const Half*>(src), src_factor, n, divisor);
  else
    scaled_floats(static_cast<BFloat16*>(dst), dst_factor, static_cast<const BFloat16*>(src), src_factor, n,
                  divisor);
}

// src = nullptr: only the division.
void divide_all(DType dtype, void* dst, const void* src, std::int64_t n, double divisor) {
  switch (dtype) {
    case DType::f32:
      return divide_floats(static_cast<float*>(dst), static_cast<const float*>(src), n, divisor);
    case DType::f64:
      return divide_floats(static_cast<double*>(dst), static_cast<const double*>(src), n, divisor);
    case DType::f16: return divide_floats(static_cast<Half*>(dst), static_cast<const Half*>(src), n, divisor);
    case DType::bf16:
      return divide_floats(static_cast<BFloat16*>(dst), static_cast<const BFloat16*>(src), n, divisor);
    default: break;
  }
}

template <typename T>
void multiply_floats(T* dst, std::int64_t elements, double factor) {
  using D = typename Lanes<T>::D;
  const auto by = hn::Set(D(), static_cast<hn::TFromD<D>>(factor));
  for_each_vector(dst, const_cast<const T*>(dst), elements,
                  [&](T* d, const T*) HWY_ATTR { Lanes<T>::store(hn::Mul(Lanes<T>::load(d), by), d); });
}

template <typename T>
void widen_floats(float* dst, const T* src, std::int64_t elements) {
  for_each_vector(dst, src, elements,
                  [](float* d, const T* s) HWY_ATTR { Lanes<float>::store(Lanes<T>::load(s), d); });
}

void widen_all(DType dtype, float* dst, const void* src, std::int64_t n) {
  if (dtype == DType::f16) widen_floats(dst, static_cast<const Half*>(src), n);
  else widen_floats(dst, static_cast<const BFloat16*>(src), n);
}

template <typename T>
void narrow_floats(T* dst, const float* src, std::int64_t elements, double divisor) {
  const auto by = hn::Set(typename Lanes<T>::D(), static_cast<float>(divisor));
  for_each_vector(dst, src, elements, [&](T* d, const float* s) HWY_ATTR {
    Lanes<T>::store(hn::Div(Lanes<float>::load(s), by), d);
  });
}

void narrow_all(DType dtype, void* dst, const float* src, std::int64_t n, double divisor) {
  if (dtype == DType::f16) narrow_floats(static_cast<Half*>(dst), src, n, divisor);
  else narrow_floats(static_cast<BFloat16*>(dst), src, n, divisor);
}

void multiply_all(DType dtype, void* dst, std::int64_t n, double factor) {
  switch (dtype) {
    case DType::f32: return multiply_floats(static_cast<float*>(dst), n, factor);
    case DType::f64: return multiply_floats(static_cast<double*>(dst), n, factor);
    case DType::f16: return multiply_floats(static_cast<Half*>(dst), n, factor);
    case DType::bf16: return multiply_floats(static_cast<BFloat16*>(dst), n, factor);
    default: break;
  }
}

using Outs = std::span<std::byte* const>;
using Ins = std::span<const std::byte* const>;

template <ReduceOp kOp, class V, class D>
HWY_INLINE V finished(D d, V v, double divisor) {
  if constexpr (kOp == ReduceOp::average) return hn::Div(v, hn::Set(d, static_cast<hn::TFromD<D>>(divisor)));
  else return v;
}

// Two arrays, the ranks of most machines that have no more: the pointers stay in registers.
template <ReduceOp kOp, typename T>
std::int64_t reduce_pairs(Outs to, Ins from, std::int64_t elements, double divisor) {
  using D = typename Lanes<T>::D;
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* a = reinterpret_cast<const T*>(from[0]);
  const T* b = reinterpret_cast<const T*>(from[1]);
  T* const x = reinterpret_cast<T*>(to.front());
  T* const y = reinterpret_cast<T*>(to.back());
  const bool twice = to.size() == 2;
  std::int64_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    const auto sum = finished<kOp>(d, combine<kOp>(d, Lanes<T>::load(a + i), Lanes<T>::load(b + i)), divisor);
    Lanes<T>::store(sum, x + i);
    if (twice) Lanes<T>::store(sum, y + i);
  }
  return i;
}

// Four vectors at a time, so that the walk over the arrays' addresses is shared by several loads.
template <ReduceOp kOp, typename T>
std::int64_t reduce_several(Outs to, Ins from, std::int64_t elements, double divisor) {
  using D = typename Lanes<T>::D;
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + 4 * lanes <= elements; i += 4 * lanes) {
    const T* first = reinterpret_cast<const T*>(from[0]) + i;
    auto v0 = Lanes<T>::load(first), v1 = Lanes<T>::load(first + lanes),
         v2 = Lanes<T>::load(first + 2 * lanes), v3 = Lanes<T>::load(first + 3 * lanes);
    for (const std::byte* array : from.subspan(1)) {
      const T* next = reinterpret_cast<const T*>(array) + i;
      v0 = combine<kOp>(d, v0, Lanes<T>::load(next));
      v1 = combine<kOp>(d, v1, Lanes<T>::load(next + lanes));
      v2 = combine<kOp>(d, v2, Lanes<T>::load(next + 2 * lanes));
      v3 = combine<kOp>(d, v3, Lanes<T>::load(next + 3 * lanes));
    }
    for (std::byte* array : to) {
      T* out = reinterpret_cast<T*>(array) + i;
      Lanes<T>::store(finished<kOp>(d, v0, divisor), out);
      Lanes<T>::store(finished<kOp>(d, v1, divisor), out + lanes);
      Lanes<T>::store(finished<kOp>(d, v2, divisor), out + 2 * lanes);
      Lanes<T>::store(finished<kOp>(d, v3, divisor), out + 3 * lanes);
    }
  }
  return i;
}

// The rest, a vector at a time, in copies that have the room.
template <ReduceOp kOp, typename T>
void reduce_rest(Outs to, Ins from, std::int64_t begin, std::int64_t end, double divisor) {
  using D = typename Lanes<T>::D;
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = begin; i < end; i += lanes) {
    const auto bytes = static_cast<std::size_t>(std::min(lanes, end - i)) * sizeof(T);
    const auto padded = [&](const std::byte* array) HWY_ATTR {
      T rest[hn::MaxLanes(D())] = {};
      std::memcpy(static_cast<void*>(rest), reinterpret_cast<const T*>(array) + i, bytes);
      return Lanes<T>::load(rest);
    };
    auto v = padded(from[0]);
    for (const std::byte* array : from.subspan(1)) v = combine<kOp>(d, v, padded(array));
    T rest[hn::MaxLanes(D())] = {};
    Lanes<T>::store(finished<kOp>(d, v, divisor), rest);
    for (std::byte* array : to) std::memcpy(static_cast<void*>(reinterpret_cast<T*>(array) + i), rest, bytes);
  }
}

template <ReduceOp kOp, typename T>
void many_floats(Outs to, Ins from, std::int64_t elements, double divisor) {
  const bool pair = from.size() == 2 && to.size() <= 2;
  const std::int64_t done = pair ? reduce_pairs<kOp, T>(to, from, elements, divisor)
                                 : reduce_several<kOp, T>(to, from, elements, divisor);
  reduce_rest<kOp, T>(to, from, done, elements, divisor);
}

template <ReduceOp kOp, typename T, typename Wide>
void many_integers(Outs to, Ins from, std::int64_t elements) {
  constexpr std::int64_t kBlock = 4096 / sizeof(T);  // stays in the first cache
  alignas(64) T block[kBlock];
  for (std::int64_t i = 0; i < elements; i += kBlock) {
    const std::int64_t n = std::min(kBlock, elements - i);
    const auto bytes = static_cast<std::size_t>(n) * sizeof(T);
    std::memcpy(block, reinterpret_cast<const T*>(from[0]) + i, bytes);
    for (const std::byte* array : from.subspan(1))
      reduce_integers<kOp, T, Wide>(block, reinterpret_cast<const T*>(array) + i, n);
    for (std::byte* array : to) std::memcpy(reinterpret_cast<T*>(array) + i, block, bytes);
  }
}

template <ReduceOp kOp>
void many_typed(DType dtype, Outs to, Ins from, std::int64_t n, double divisor) {
  constexpr ReduceOp kInteger = kOp == ReduceOp::average ? ReduceOp::sum : kOp;
  constexpr ReduceOp kBoolean =
      kOp == ReduceOp::min || kOp == ReduceOp::product ? ReduceOp::min : ReduceOp::max;
  using U = std::uint32_t;  // narrower types would be promoted to int, whose overflow is undefined
  switch (dtype) {
    case DType::f32: return many_floats<kOp, float>(to, from, n, divisor);
    case DType::f64: return many_floats<kOp, double>(to, from, n, divisor);
    case DType::f16: return many_floats<kOp, Half>(to, from, n, divisor);
    case DType::bf16: return many_floats<kOp, BFloat16>(to, from, n, divisor);
    case DType::i32: return many_integers<kInteger, std::int32_t, U>(to, from, n);
    case DType::i64: return many_integers<kInteger, std::int64_t, std::uint64_t>(to, from, n);
    case DType::u8: return many_integers<kInteger, std::uint8_t, U>(to, from, n);
    case DType::i8: return many_integers<kInteger, std::int8_t, U>(to, from, n);
    case DType::boolean: return many_integers<kBoolean, std::uint8_t, U>(to, from, n);
    case DType::string: break;
  }
}

void many_all(ReduceOp op, DType dtype, Outs to, Ins from, std::int64_t n, double divisor) {
  switch (op) {
    case ReduceOp::sum: return many_typed<ReduceOp::sum>(dtype, to, from, n, divisor);
    case ReduceOp::average: return many_typed<ReduceOp::average>(dtype, to, from, n, divisor);
    case ReduceOp::min: return many_typed<ReduceOp::min>(dtype, to, from, n, divisor);
    case ReduceOp::max: return many_typed<ReduceOp::max>(dtype, to, from, n, divisor);
    case ReduceOp::product: return many_typed<ReduceOp::product>(dtype, to, from, n, divisor);
    case ReduceOp::adasum: break;
  }
}

}  // namespace
}  // namespace kolo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo {
namespace {

HWY_EXPORT(reduce_all);
HWY_EXPORT(divide_all);
HWY_EXPORT(scaled_all);
HWY_EXPORT(multiply_all);
HWY_EXPORT(widen_all);
HWY_EXPORT(narrow_all);
HWY_EXPORT(many_all);

}  // namespace

void reduce(ReduceOp op, DType dtype, void* dst, const void* src, std::int64_t elements) {
  if (dtype == DType::string) throw InternalError("reduce: strings are not reduced");
  if (op == ReduceOp::adasum) throw InternalError("reduce: adasum is not element-wise");
  HWY_DYNAMIC_DISPATCH(reduce_all)(op, dtype, dst, src, elements);
}

void reduce_and_divide(DType dtype, void* dst, const void* src, std::int64_t elements, double divisor) {
  if (!is_floating(dtype)) throw InternalError("reduce_and_divide: {} is not floating", dtype);
  HWY_DYNAMIC_DISPATCH(divide_all)(dtype, dst, src, elements, divisor);
}

void reduce_scaled(DType dtype, void* dst, float dst_factor, const void* src, float src_factor,
                   std::int64_t elements, float divisor) {
  if (dtype != DType::f16 && dtype != DType::bf16)
    throw InternalError("reduce_scaled: {} has no 16 bits", dtype);
  HWY_DYNAMIC_DISPATCH(scaled_all)(dtype, dst, dst_factor, src, src_factor, elements, divisor);
}

void divide(DType dtype, void* dst, std::int64_t elements, double divisor) {
  if (!is_floating(dtype)) throw InternalError("divide: {} is not floating", dtype);
  HWY_DYNAMIC_DISPATCH(divide_all)(dtype, dst, nullptr, elements, divisor);
}

void multiply(DType dtype, void* dst, std::int64_t elements, double factor) {
  if (!is_floating(dtype)) throw InternalError("multiply: {} is not floating", dtype);
  HWY_DYNAMIC_DISPATCH(multiply_all)(dtype, dst, elements, factor);
}

void widen(DType dtype, float* dst, const void* src, std::int64_t elements) {
  if (dtype != DType::f16 && dtype != DType::bf16) throw InternalError("widen: {} has no 16 bits", dtype);
  HWY_DYNAMIC_DISPATCH(widen_all)(dtype, dst, src, elements);
}

void narrow(DType dtype, void* dst, const float* src, std::int64_t elements, double divisor) {
  if (dtype != DType::f16 && dtype != DType::bf16) throw InternalError("narrow: {} has no 16 bits", dtype);
  HWY_DYNAMIC_DISPATCH(narrow_all)(dtype, dst, src, elements, divisor);
}

void reduce_many(ReduceOp op, DType dtype, std::span<std::byte* const> to,
                 std::span<const std::byte* const> from, std::int64_t elements, double divisor) {
  if (dtype == DType::string) throw InternalError("reduce_many: strings are not reduced");
  if (op == ReduceOp::adasum) throw InternalError("reduce_many: adasum is not element-wise");
  HWY_DYNAMIC_DISPATCH(many_all)(op, dtype, to, from, elements, divisor);
}

}  // namespace kolo
#endif  // HWY_ONCE
