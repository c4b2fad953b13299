#include <kolo/collectives/reduce/reduce_many.h>

#include <algorithm>
#include <cstring>

#include <kolo/core/base/error.h>

// Compiled once for each instruction set, as reduce.cc is.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kolo/collectives/reduce/reduce_many.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <kolo/collectives/reduce/reduce-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::HWY_NAMESPACE {
namespace {

using Outs = std::span<std::byte* const>;
using Ins = std::span<const std::byte* const>;

template <ReduceOp kOp, class V, class D>
HWY_INLINE V finished(D d, V v, int divisor) {
  if constexpr (kOp == ReduceOp::average) return hn::Div(v, hn::Set(d, static_cast<hn::TFromD<D>>(divisor)));
  else return v;
}

// Two arrays, the ranks of most machines that have no more: the pointers stay in registers.
template <ReduceOp kOp, typename T>
std::int64_t reduce_pairs(Outs to, Ins from, std::int64_t elements, int divisor) {
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
std::int64_t reduce_several(Outs to, Ins from, std::int64_t elements, int divisor) {
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
void reduce_rest(Outs to, Ins from, std::int64_t begin, std::int64_t end, int divisor) {
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
void many_floats(Outs to, Ins from, std::int64_t elements, int divisor) {
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
void many_typed(DType dtype, Outs to, Ins from, std::int64_t n, int divisor) {
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

void many_all(ReduceOp op, DType dtype, Outs to, Ins from, std::int64_t n, int divisor) {
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

HWY_EXPORT(many_all);

}  // namespace

void reduce_many(ReduceOp op, DType dtype, std::span<std::byte* const> to,
                 std::span<const std::byte* const> from, std::int64_t elements, int divisor) {
  if (dtype == DType::string) throw InternalError("reduce_many: strings are not reduced");
  if (op == ReduceOp::adasum) throw InternalError("reduce_many: adasum is not element-wise");
  HWY_DYNAMIC_DISPATCH(many_all)(op, dtype, to, from, elements, divisor);
}

}  // namespace kolo
#endif  // HWY_ONCE
