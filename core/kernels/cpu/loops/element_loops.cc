#include <kolo/core/kernels/cpu/loops/element_loops.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include <kolo/core/kernels/cpu/loops/each_target-inl.h>

#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace kolo::detail::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  else return false;
}

// The ops are structs and not lambdas: g++ compiles a lambda without the instruction set of the function
// around it.
// clang-format off
struct Add { template <typename T> static T apply(T a, T b) { return a + b; } };
struct Sub { template <typename T> static T apply(T a, T b) { return a - b; } };
struct Mul { template <typename T> static T apply(T a, T b) { return a * b; } };
struct Pow { template <typename T> static T apply(T a, T b) { return std::pow(a, b); } };
// A NaN on either side gives NaN, as in NumPy: a loss that went wrong must not be hidden.
struct Maximum { template <typename T> static T apply(T a, T b) { return a > b || is_nan(a) ? a : b; } };
struct Minimum { template <typename T> static T apply(T a, T b) { return a < b || is_nan(a) ? a : b; } };
struct TanhGrad { template <typename T> static T apply(T dy, T y) { return dy * (1 - y * y); } };
struct SigmoidGrad { template <typename T> static T apply(T dy, T y) { return dy * y * (1 - y); } };
struct ReluGrad { template <typename T> static T apply(T dy, T y) { return y > 0 ? dy : T(0); } };

struct SquaredDifference { template <typename T> static T apply(T a, T b) { return (a - b) * (a - b); } };

struct Equal { template <typename T> static bool apply(T a, T b) { return a == b; } };
struct NotEqual { template <typename T> static bool apply(T a, T b) { return a != b; } };
struct Less { template <typename T> static bool apply(T a, T b) { return a < b; } };
struct LessEqual { template <typename T> static bool apply(T a, T b) { return a <= b; } };
struct Greater { template <typename T> static bool apply(T a, T b) { return a > b; } };
struct GreaterEqual { template <typename T> static bool apply(T a, T b) { return a >= b; } };

struct Neg { template <typename T> static T apply(T x) { return -x; } };
struct Abs { template <typename T> static T apply(T x) { return x < 0 ? -x : x; } };
struct Square { template <typename T> static T apply(T x) { return x * x; } };
struct Relu { template <typename T> static T apply(T x) { return x < 0 ? T(0) : x; } };
struct Floor { template <typename T> static T apply(T x) { return std::floor(x); } };
struct Ceil { template <typename T> static T apply(T x) { return std::ceil(x); } };
struct Round { template <typename T> static T apply(T x) { return std::nearbyint(x); } };
struct Reciprocal { template <typename T> static T apply(T x) { return 1 / x; } };
struct Log1p { template <typename T> static T apply(T x) { return std::log1p(x); } };
struct Expm1 { template <typename T> static T apply(T x) { return std::expm1(x); } };
struct Sin { template <typename T> static T apply(T x) { return std::sin(x); } };
struct Cos { template <typename T> static T apply(T x) { return std::cos(x); } };
struct Erf { template <typename T> static T apply(T x) { return std::erf(x); } };
struct IsNan { template <typename T> static bool apply(T x) { return std::isnan(x); } };
struct IsInf { template <typename T> static bool apply(T x) { return std::isinf(x); } };
struct IsFinite { template <typename T> static bool apply(T x) { return std::isfinite(x); } };
struct Log { template <typename T> static T apply(T x) { return std::log(x); } };
// clang-format on
struct Sign {
  template <typename T>
  static T apply(T x) {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x;  // a NaN stays one
  }
};
struct Div {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      // The smallest number by −1 would trap; it wraps around, as addition does.
      if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
    }
    return a / b;
  }
};

// The remainder has the sign of the divisor, the quotient is rounded down, as in Python.
struct FloorMod {
  template <typename T>
  static T apply(T a, T b) {
    T rest;
    if constexpr (std::is_integral_v<T>) rest = b == -1 ? 0 : a % b;
    else rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
};
struct FloorDiv {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return b != -1 && a % b != 0 && (a < 0) != (b < 0) ? a / b - 1 : Div::apply(a, b);
    else return std::floor(a / b);
  }
};

// Ops with a form for whole vectors: `vector` for f32, `apply` for f64.
struct Sqrt {
  static double apply(double x) { return std::sqrt(x); }
  template <typename D, typename V>
  static V vector(D, V x) {
    return hn::Sqrt(x);
  }
};
struct Rsqrt {
  static double apply(double x) { return 1 / std::sqrt(x); }
  // Not the hardware's approximation, which has 12 to 14 bits, as many as the processor likes.
  template <typename D, typename V>
  static V vector(D d, V x) {
    return hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x));
  }
};
struct Exp {
  static double apply(double x) { return std::exp(x); }
  // Highway's gives 0 for NaN and is undefined beyond 104, where float is infinite already.
  template <typename D, typename V>
  static V vector(D d, V x) {
    const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
    const V inside = hn::Exp(d, hn::Min(x, hn::Set(d, 88.7228317f)));
    const V y = hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.7228317f)), infinity, inside);
    return hn::IfThenElse(hn::IsNaN(x), x, y);
  }
};
struct Tanh {
  static double apply(double x) { return std::tanh(x); }
  // 9.02 rounds to ±1 already; Highway's own limit comes too late for its exponential.
  template <typename D, typename V>
  static V vector(D d, V x) {
    const V limit = hn::Set(d, 18.0f);
    const V y = hn::Tanh(d, hn::Max(hn::Neg(limit), hn::Min(x, limit)));
    return hn::IfThenElse(hn::IsNaN(x), x, y);
  }
};
struct Sigmoid {
  static double apply(double x) { return 1 / (1 + std::exp(-x)); }
  template <typename D, typename V>
  static V vector(D d, V x) {
    const V one = hn::Set(d, 1.0f);
    return hn::Div(one, hn::Add(one, Exp::vector(d, hn::Neg(x))));
  }
};

// `omp simd`: out may be a or b, which the compiler would else check for and then run one element at a time.
template <typename Op, typename T, typename Result>
void binary(const void* a_memory, std::int64_t a_step, const void* b_memory, std::int64_t b_step,
            void* out_memory, std::int64_t count) {
  const T* a = static_cast<const T*>(a_memory);
  const T* b = static_cast<const T*>(b_memory);
  Result* out = static_cast<Result*>(out_memory);
  if (count == 1) {
    out[0] = Op::apply(a[0], b[0]);
  } else if (a_step == 0) {
    const T repeated = a[0];
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) out[i] = Op::apply(repeated, b[i]);
  } else if (b_step == 0) {
    const T repeated = b[0];
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) out[i] = Op::apply(a[i], repeated);
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) out[i] = Op::apply(a[i], b[i]);
  }
}

template <typename Op, typename T, typename Result = T>
void unary(const void* x_memory, void* out_memory, std::int64_t count) {
  const T* x = static_cast<const T*>(x_memory);
  Result* out = static_cast<Result*>(out_memory);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) out[i] = Op::apply(x[i]);
}

template <typename Op>
void unary_vectors(const void* x_memory, void* out_memory, std::int64_t count) {
  const float* x = static_cast<const float*>(x_memory);
  float* out = static_cast<float*>(out_memory);
  const hn::ScalableTag<float> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(Op::vector(d, hn::LoadU(d, x + i)), d, out + i);
  if (i == count) return;
  // The rest goes through the same arithmetic, so that an element's value does not depend on where a piece
  // ends.
  HWY_ALIGN float rest[hn::MaxLanes(d)] = {};
  for (std::int64_t j = i; j < count; ++j) rest[j - i] = x[j];
  hn::Store(Op::vector(d, hn::Load(d, rest)), d, rest);
  for (std::int64_t j = i; j < count; ++j) out[j] = rest[j - i];
}

template <typename Op>
BinaryLoop arithmetic(DType type) {
  switch (type) {
    case DType::f32: return binary<Op, float, float>;
    case DType::f64: return binary<Op, double, double>;
    case DType::i32: return binary<Op, std::int32_t, std::int32_t>;
    case DType::i64: return binary<Op, std::int64_t, std::int64_t>;
    default: return nullptr;
  }
}

template <typename Op>
BinaryLoop real(DType type) {
  return type == DType::f32   ? binary<Op, float, float>
         : type == DType::f64 ? binary<Op, double, double>
                              : nullptr;
}

BinaryLoop choose_binary(BinaryOp op, DType type) {
  switch (op) {
    case BinaryOp::add: return arithmetic<Add>(type);
    case BinaryOp::sub: return arithmetic<Sub>(type);
    case BinaryOp::mul: return arithmetic<Mul>(type);
    case BinaryOp::div: return arithmetic<Div>(type);
    case BinaryOp::maximum: return arithmetic<Maximum>(type);
    case BinaryOp::minimum: return arithmetic<Minimum>(type);
    case BinaryOp::pow: return real<Pow>(type);
    case BinaryOp::tanh_grad: return real<TanhGrad>(type);
    case BinaryOp::sigmoid_grad: return real<SigmoidGrad>(type);
    case BinaryOp::relu_grad: return real<ReluGrad>(type);
    case BinaryOp::squared_difference: return arithmetic<SquaredDifference>(type);
    case BinaryOp::floor_div: return arithmetic<FloorDiv>(type);
    case BinaryOp::floor_mod: return arithmetic<FloorMod>(type);
  }
  return nullptr;
}

template <typename Op>
BinaryLoop compare(DType type) {
  switch (type) {
    case DType::f32: return binary<Op, float, bool>;
    case DType::f64: return binary<Op, double, bool>;
    case DType::i32: return binary<Op, std::int32_t, bool>;
    case DType::i64: return binary<Op, std::int64_t, bool>;
    case DType::boolean:
    case DType::u8: return binary<Op, std::uint8_t, bool>;
    case DType::i8: return binary<Op, std::int8_t, bool>;
    default: return nullptr;
  }
}

BinaryLoop choose_comparison(Comparison comparison, DType type) {
  switch (comparison) {
    case Comparison::equal: return compare<Equal>(type);
    case Comparison::not_equal: return compare<NotEqual>(type);
    case Comparison::less: return compare<Less>(type);
    case Comparison::less_equal: return compare<LessEqual>(type);
    case Comparison::greater: return compare<Greater>(type);
    case Comparison::greater_equal: return compare<GreaterEqual>(type);
  }
  return nullptr;
}

template <typename Op>
UnaryLoop plain(DType type) {
  return type == DType::f32 ? unary<Op, float> : type == DType::f64 ? unary<Op, double> : nullptr;
}

template <typename Op>
UnaryLoop arithmetic_unary(DType type) {
  return type == DType::i32   ? unary<Op, std::int32_t>
         : type == DType::i64 ? unary<Op, std::int64_t>
                              : plain<Op>(type);
}

template <typename Op>
UnaryLoop predicate(DType type) {
  return type == DType::f32 ? unary<Op, float, bool> : type == DType::f64 ? unary<Op, double, bool> : nullptr;
}

template <typename Op>
UnaryLoop vectors(DType type) {
  return type == DType::f32 ? unary_vectors<Op> : type == DType::f64 ? unary<Op, double> : nullptr;
}

UnaryLoop choose_unary(UnaryOp op, DType type) {
  switch (op) {
    case UnaryOp::neg: return arithmetic_unary<Neg>(type);
    case UnaryOp::abs: return arithmetic_unary<Abs>(type);
    case UnaryOp::sign: return arithmetic_unary<Sign>(type);
    case UnaryOp::square: return arithmetic_unary<Square>(type);
    case UnaryOp::sqrt: return vectors<Sqrt>(type);
    case UnaryOp::rsqrt: return vectors<Rsqrt>(type);
    case UnaryOp::exp: return vectors<Exp>(type);
    case UnaryOp::log: return plain<Log>(type);
    case UnaryOp::tanh: return vectors<Tanh>(type);
    case UnaryOp::sigmoid: return vectors<Sigmoid>(type);
    case UnaryOp::relu: return arithmetic_unary<Relu>(type);
    case UnaryOp::floor: return plain<Floor>(type);
    case UnaryOp::ceil: return plain<Ceil>(type);
    case UnaryOp::round: return plain<Round>(type);
    case UnaryOp::reciprocal: return plain<Reciprocal>(type);
    case UnaryOp::log1p: return plain<Log1p>(type);
    case UnaryOp::expm1: return plain<Expm1>(type);
    case UnaryOp::sin: return plain<Sin>(type);
    case UnaryOp::cos: return plain<Cos>(type);
    case UnaryOp::erf: return plain<Erf>(type);
    case UnaryOp::is_nan: return predicate<IsNan>(type);
    case UnaryOp::is_inf: return predicate<IsInf>(type);
    case UnaryOp::is_finite: return predicate<IsFinite>(type);
  }
  return nullptr;
}

}  // namespace kolo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kolo::detail {

HWY_EXPORT(choose_binary);
HWY_EXPORT(choose_comparison);
HWY_EXPORT(choose_unary);

BinaryLoop binary_loop(BinaryOp op, DType type) { return HWY_DYNAMIC_DISPATCH(choose_binary)(op, type); }
BinaryLoop comparison_loop(Comparison comparison, DType type) {
  return HWY_DYNAMIC_DISPATCH(choose_comparison)(comparison, type);
}
UnaryLoop unary_loop(UnaryOp op, DType type) { return HWY_DYNAMIC_DISPATCH(choose_unary)(op, type); }

}  // namespace kolo::detail
#endif
