#include <kolo/collectives/reduce/reduce.h>

#include <kolo/core/base/error.h>

// Highway compiles what stands between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for each instruction
// set, by including this file again, and picks one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kolo/collectives/reduce/reduce.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <kolo/collectives/reduce/reduce-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::HWY_NAMESPACE {
namespace {

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
void divide_floats(T* dst, const T* src, std::int64_t elements, int divisor) {
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

// src = nullptr: only the division.
void divide_all(DType dtype, void* dst, const void* src, std::int64_t n, int divisor) {
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
void narrow_floats(T* dst, const float* src, std::int64_t elements, int divisor) {
  const auto by = hn::Set(typename Lanes<T>::D(), static_cast<float>(divisor));
  for_each_vector(dst, src, elements, [&](T* d, const float* s) HWY_ATTR {
    Lanes<T>::store(hn::Div(Lanes<float>::load(s), by), d);
  });
}

void narrow_all(DType dtype, void* dst, const float* src, std::int64_t n, int divisor) {
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

}  // namespace
}  // namespace kolo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo {
namespace {

HWY_EXPORT(reduce_all);
HWY_EXPORT(divide_all);
HWY_EXPORT(multiply_all);
HWY_EXPORT(widen_all);
HWY_EXPORT(narrow_all);

}  // namespace

void reduce(ReduceOp op, DType dtype, void* dst, const void* src, std::int64_t elements) {
  if (dtype == DType::string) throw InternalError("reduce: strings are not reduced");
  if (op == ReduceOp::adasum) throw InternalError("reduce: adasum is not element-wise");
  HWY_DYNAMIC_DISPATCH(reduce_all)(op, dtype, dst, src, elements);
}

void reduce_and_divide(DType dtype, void* dst, const void* src, std::int64_t elements, int divisor) {
  if (!is_floating(dtype)) throw InternalError("reduce_and_divide: {} is not floating", dtype);
  HWY_DYNAMIC_DISPATCH(divide_all)(dtype, dst, src, elements, divisor);
}

void divide(DType dtype, void* dst, std::int64_t elements, int divisor) {
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

void narrow(DType dtype, void* dst, const float* src, std::int64_t elements, int divisor) {
  if (dtype != DType::f16 && dtype != DType::bf16) throw InternalError("narrow: {} has no 16 bits", dtype);
  HWY_DYNAMIC_DISPATCH(narrow_all)(dtype, dst, src, elements, divisor);
}

}  // namespace kolo
#endif  // HWY_ONCE
