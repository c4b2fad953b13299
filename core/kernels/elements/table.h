// The element-wise ops, a row each. The CPU's loops and kernels, the launches and kernels of a GPU, the pass
// that fuses, and ONNX fold over these lists. A new op is a functor (unary.h, binary.h), a row in here, its
// op and its gradient in core/ops.
#pragma once

#include <cstdint>
#include <type_traits>

#include <kolo/core/kernels/elements/binary.h>
#include <kolo/core/kernels/elements/list.h>
#include <kolo/core/kernels/elements/unary.h>

namespace kolo::elements {

/// The types of elements that an op takes: on the CPU, on a GPU.
enum class Numbers {
  any,         // f32 f64 i32 i64, f32 i64
  divided,     // f32 f64 i32 i64, f32: whole numbers are divided by the host, which can throw where one is 0
  real,        // f32 f64, f32
  comparable,  // f32 f64 i32 i64 u8 i8 boolean, f32 i32 i64 boolean
  logical,     // boolean, boolean
};

template <typename T, typename... Types>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Types> || ...);

template <typename T>
constexpr bool cpu_takes(Numbers numbers) {
  switch (numbers) {
    case Numbers::any:
    case Numbers::divided: return kIsOneOf<T, float, double, std::int32_t, std::int64_t>;
    case Numbers::real: return kIsOneOf<T, float, double>;
    case Numbers::comparable:
      return kIsOneOf<T, float, double, std::int32_t, std::int64_t, std::uint8_t, std::int8_t, bool>;
    case Numbers::logical: return kIsOneOf<T, bool>;
  }
  return false;
}
template <typename T>
constexpr bool gpu_takes(Numbers numbers) {
  switch (numbers) {
    case Numbers::any: return kIsOneOf<T, float, std::int64_t>;
    case Numbers::divided:
    case Numbers::real: return kIsOneOf<T, float>;
    case Numbers::comparable: return kIsOneOf<T, float, std::int32_t, std::int64_t, bool>;
    case Numbers::logical: return kIsOneOf<T, bool>;
  }
  return false;
}

/// What a row has but for its name. kOnnx: the op of ONNX with its inputs and meaning, if there is one.
/// kMayFuse: the pass may make it an instruction of a fused op.
template <typename F, Numbers kTaken, bool kFused = false>
struct ElementOp {
  using Functor = F;
  static constexpr Numbers kNumbers = kTaken;
  static constexpr bool kMayFuse = kFused;
  static constexpr const char* kOnnx = nullptr;
};
inline constexpr bool kFuses = true;

// clang-format off
struct NegOp : ElementOp<Neg, Numbers::any, kFuses> { static constexpr const char *kName = "Neg", *kOnnx = "Neg"; };
struct AbsOp : ElementOp<Abs, Numbers::any, kFuses> { static constexpr const char *kName = "Abs", *kOnnx = "Abs"; };
struct SignOp : ElementOp<Sign, Numbers::any, kFuses> { static constexpr const char *kName = "Sign", *kOnnx = "Sign"; };
struct SquareOp : ElementOp<Square, Numbers::any, kFuses> { static constexpr const char* kName = "Square"; };
struct ReluOp : ElementOp<Relu, Numbers::any, kFuses> { static constexpr const char *kName = "Relu", *kOnnx = "Relu"; };
struct SqrtOp : ElementOp<Sqrt, Numbers::real, kFuses> { static constexpr const char *kName = "Sqrt", *kOnnx = "Sqrt"; };
struct RsqrtOp : ElementOp<Rsqrt, Numbers::real, kFuses> { static constexpr const char* kName = "Rsqrt"; };
struct ExpOp : ElementOp<Exp, Numbers::real, kFuses> { static constexpr const char *kName = "Exp", *kOnnx = "Exp"; };
struct LogOp : ElementOp<Log, Numbers::real, kFuses> { static constexpr const char *kName = "Log", *kOnnx = "Log"; };
struct TanhOp : ElementOp<Tanh, Numbers::real, kFuses> { static constexpr const char *kName = "Tanh", *kOnnx = "Tanh"; };
struct SigmoidOp : ElementOp<Sigmoid, Numbers::real, kFuses> { static constexpr const char *kName = "Sigmoid", *kOnnx = "Sigmoid"; };
struct FloorOp : ElementOp<Floor, Numbers::real, kFuses> { static constexpr const char *kName = "Floor", *kOnnx = "Floor"; };
struct CeilOp : ElementOp<Ceil, Numbers::real> { static constexpr const char *kName = "Ceil", *kOnnx = "Ceil"; };
struct RoundOp : ElementOp<Round, Numbers::real> { static constexpr const char *kName = "Round", *kOnnx = "Round"; };
struct ReciprocalOp : ElementOp<Reciprocal, Numbers::real> { static constexpr const char *kName = "Reciprocal", *kOnnx = "Reciprocal"; };
struct Log1pOp : ElementOp<Log1p, Numbers::real> { static constexpr const char* kName = "Log1p"; };
struct Expm1Op : ElementOp<Expm1, Numbers::real> { static constexpr const char* kName = "Expm1"; };
struct SinOp : ElementOp<Sin, Numbers::real> { static constexpr const char *kName = "Sin", *kOnnx = "Sin"; };
struct CosOp : ElementOp<Cos, Numbers::real> { static constexpr const char *kName = "Cos", *kOnnx = "Cos"; };
struct ErfOp : ElementOp<Erf, Numbers::real> { static constexpr const char *kName = "Erf", *kOnnx = "Erf"; };
struct IsNanOp : ElementOp<IsNan, Numbers::real> { static constexpr const char* kName = "IsNan"; };
struct IsInfOp : ElementOp<IsInf, Numbers::real> { static constexpr const char* kName = "IsInf"; };
struct IsFiniteOp : ElementOp<IsFinite, Numbers::real> { static constexpr const char* kName = "IsFinite"; };
struct LogicalNotOp : ElementOp<LogicalNot, Numbers::logical> { static constexpr const char* kName = "LogicalNot"; };

struct AddOp : ElementOp<Add, Numbers::any, kFuses> { static constexpr const char *kName = "Add", *kOnnx = "Add"; };
struct SubOp : ElementOp<Sub, Numbers::any, kFuses> { static constexpr const char *kName = "Sub", *kOnnx = "Sub"; };
struct MulOp : ElementOp<Mul, Numbers::any, kFuses> { static constexpr const char *kName = "Mul", *kOnnx = "Mul"; };
struct DivOp : ElementOp<Div, Numbers::divided, kFuses> { static constexpr const char *kName = "Div", *kOnnx = "Div"; };
struct MaximumOp : ElementOp<Maximum, Numbers::any, kFuses> { static constexpr const char *kName = "Maximum", *kOnnx = "Max"; };
struct MinimumOp : ElementOp<Minimum, Numbers::any, kFuses> { static constexpr const char *kName = "Minimum", *kOnnx = "Min"; };
struct PowOp : ElementOp<Pow, Numbers::real, kFuses> { static constexpr const char *kName = "Pow", *kOnnx = "Pow"; };
struct TanhGradOp : ElementOp<TanhGrad, Numbers::real, kFuses> { static constexpr const char* kName = "TanhGrad"; };
struct SigmoidGradOp : ElementOp<SigmoidGrad, Numbers::real, kFuses> { static constexpr const char* kName = "SigmoidGrad"; };
struct ReluGradOp : ElementOp<ReluGrad, Numbers::real, kFuses> { static constexpr const char* kName = "ReluGrad"; };
struct SquaredDifferenceOp : ElementOp<SquaredDifference, Numbers::any> { static constexpr const char* kName = "SquaredDifference"; };
struct FloorDivOp : ElementOp<FloorDiv, Numbers::divided> { static constexpr const char* kName = "FloorDiv"; };
struct FloorModOp : ElementOp<FloorMod, Numbers::divided> { static constexpr const char* kName = "FloorMod"; };
struct EqualOp : ElementOp<Equal, Numbers::comparable> { static constexpr const char *kName = "Equal", *kOnnx = "Equal"; };
struct NotEqualOp : ElementOp<NotEqual, Numbers::comparable> { static constexpr const char* kName = "NotEqual"; };
struct LessOp : ElementOp<Less, Numbers::comparable> { static constexpr const char *kName = "Less", *kOnnx = "Less"; };
struct LessEqualOp : ElementOp<LessEqual, Numbers::comparable> { static constexpr const char *kName = "LessEqual", *kOnnx = "LessOrEqual"; };
struct GreaterOp : ElementOp<Greater, Numbers::comparable> { static constexpr const char *kName = "Greater", *kOnnx = "Greater"; };
struct GreaterEqualOp : ElementOp<GreaterEqual, Numbers::comparable> { static constexpr const char *kName = "GreaterEqual", *kOnnx = "GreaterOrEqual"; };
struct LogicalAndOp : ElementOp<LogicalAnd, Numbers::logical> { static constexpr const char* kName = "LogicalAnd"; };
struct LogicalOrOp : ElementOp<LogicalOr, Numbers::logical> { static constexpr const char* kName = "LogicalOr"; };
// clang-format on

/// Of one element.
using UnaryOps = List<NegOp, AbsOp, SignOp, SquareOp, ReluOp, SqrtOp, RsqrtOp, ExpOp, LogOp, TanhOp,
                      SigmoidOp, FloorOp, CeilOp, RoundOp, ReciprocalOp, Log1pOp, Expm1Op, SinOp, CosOp,
                      ErfOp, IsNanOp, IsInfOp, IsFiniteOp, LogicalNotOp>;
/// Of two elements.
using BinaryOps = List<AddOp, SubOp, MulOp, DivOp, MaximumOp, MinimumOp, PowOp, TanhGradOp, SigmoidGradOp,
                       ReluGradOp, SquaredDifferenceOp, FloorDivOp, FloorModOp, EqualOp, NotEqualOp, LessOp,
                       LessEqualOp, GreaterOp, GreaterEqualOp, LogicalAndOp, LogicalOrOp>;

}  // namespace kolo::elements
