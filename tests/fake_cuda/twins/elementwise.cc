#include <kolo/core/kernels/cuda/launch_elementwise.h>

#include <type_traits>

#include <kolo/core/kernels/elements/binary.h>
#include <kolo/core/kernels/elements/unary.h>

#include "../launches.h"
#include "walk.h"

namespace kolo::cuda {
namespace {

using fake_cuda::device_read;
using fake_cuda::device_write;
using fake_cuda::launch;

template <typename Operation, typename T, typename Result = T>
cudaError_t unary(cudaStream_t stream, const UnaryArguments& arguments) {
  const auto elements = arguments.elements;
  const T* const x = device_read<T>(arguments.x, elements);
  Result* const y = device_write<Result>(arguments.y, elements);
  return launch("unary", stream, [=] {
    for (std::int64_t i = 0; i < elements; ++i) y[i] = Operation()(x[i]);
  });
}

template <typename T>
cudaError_t unary_of_any_number(cudaStream_t stream, const UnaryArguments& arguments) {
  using namespace elements;
  switch (arguments.op) {
    case UnaryOp::neg: return unary<Neg, T>(stream, arguments);
    case UnaryOp::abs: return unary<Abs, T>(stream, arguments);
    case UnaryOp::sign: return unary<Sign, T>(stream, arguments);
    case UnaryOp::square: return unary<Square, T>(stream, arguments);
    case UnaryOp::relu: return unary<Relu, T>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t unary_of_real(cudaStream_t stream, const UnaryArguments& arguments) {
  using namespace elements;
  using T = float;
  switch (arguments.op) {
    case UnaryOp::sqrt: return unary<Sqrt, T>(stream, arguments);
    case UnaryOp::rsqrt: return unary<Rsqrt, T>(stream, arguments);
    case UnaryOp::exp: return unary<Exp, T>(stream, arguments);
    case UnaryOp::log: return unary<Log, T>(stream, arguments);
    case UnaryOp::log1p: return unary<Log1p, T>(stream, arguments);
    case UnaryOp::expm1: return unary<Expm1, T>(stream, arguments);
    case UnaryOp::tanh: return unary<Tanh, T>(stream, arguments);
    case UnaryOp::sigmoid: return unary<Sigmoid, T>(stream, arguments);
    case UnaryOp::floor: return unary<Floor, T>(stream, arguments);
    case UnaryOp::ceil: return unary<Ceil, T>(stream, arguments);
    case UnaryOp::round: return unary<Round, T>(stream, arguments);
    case UnaryOp::reciprocal: return unary<Reciprocal, T>(stream, arguments);
    case UnaryOp::erf: return unary<Erf, T>(stream, arguments);
    case UnaryOp::is_nan: return unary<IsNan, T, bool>(stream, arguments);
    case UnaryOp::is_inf: return unary<IsInf, T, bool>(stream, arguments);
    case UnaryOp::is_finite: return unary<IsFinite, T, bool>(stream, arguments);
    default: return unary_of_any_number<T>(stream, arguments);
  }
}

// Of binary ops and comparisons alike.
template <typename Operation, typename T, typename Result = T, typename Arguments>
cudaError_t binary(cudaStream_t stream, const Arguments& arguments) {
  const auto elements = arguments.elements;
  const auto walk = arguments.walk;
  const T* const a = device_read<T>(arguments.a, fake_cuda::extent(walk, 0));
  const T* const b = device_read<T>(arguments.b, fake_cuda::extent(walk, 1));
  Result* const y = device_write<Result>(arguments.y, elements);
  return launch("binary", stream, [=] {
    for (std::int64_t i = 0; i < elements; ++i) {
      const auto [at_a, at_b] = fake_cuda::offsets(walk, i);
      y[i] = Operation()(a[at_a], b[at_b]);
    }
  });
}

template <typename T>
cudaError_t binary_of_any_number(cudaStream_t stream, const BinaryArguments& arguments) {
  using namespace elements;
  switch (arguments.op) {
    case BinaryOp::add: return binary<Add, T>(stream, arguments);
    case BinaryOp::sub: return binary<Sub, T>(stream, arguments);
    case BinaryOp::mul: return binary<Mul, T>(stream, arguments);
    case BinaryOp::maximum: return binary<Maximum, T>(stream, arguments);
    case BinaryOp::minimum: return binary<Minimum, T>(stream, arguments);
    case BinaryOp::squared_difference: return binary<SquaredDifference, T>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t binary_of_real(cudaStream_t stream, const BinaryArguments& arguments) {
  using namespace elements;
  using T = float;
  switch (arguments.op) {
    case BinaryOp::div: return binary<Div, T>(stream, arguments);
    case BinaryOp::pow: return binary<Pow, T>(stream, arguments);
    case BinaryOp::floor_div: return binary<FloorDiv, T>(stream, arguments);
    case BinaryOp::floor_mod: return binary<FloorMod, T>(stream, arguments);
    case BinaryOp::tanh_grad: return binary<TanhGrad, T>(stream, arguments);
    case BinaryOp::sigmoid_grad: return binary<SigmoidGrad, T>(stream, arguments);
    case BinaryOp::relu_grad: return binary<ReluGrad, T>(stream, arguments);
    default: return binary_of_any_number<T>(stream, arguments);
  }
}

template <typename T>
cudaError_t compare(cudaStream_t stream, const CompareArguments& arguments) {
  using namespace elements;
  switch (arguments.op) {
    case CompareOp::equal: return binary<Equal, T, bool>(stream, arguments);
    case CompareOp::not_equal: return binary<NotEqual, T, bool>(stream, arguments);
    case CompareOp::less: return binary<Less, T, bool>(stream, arguments);
    case CompareOp::less_equal: return binary<LessEqual, T, bool>(stream, arguments);
    case CompareOp::greater: return binary<Greater, T, bool>(stream, arguments);
    case CompareOp::greater_equal: return binary<GreaterEqual, T, bool>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t compare_booleans(cudaStream_t stream, const CompareArguments& arguments) {
  using namespace elements;
  switch (arguments.op) {
    case CompareOp::equal: return binary<Equal, bool, bool>(stream, arguments);
    case CompareOp::not_equal: return binary<NotEqual, bool, bool>(stream, arguments);
    case CompareOp::logical_and: return binary<LogicalAnd, bool, bool>(stream, arguments);
    case CompareOp::logical_or: return binary<LogicalOr, bool, bool>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t launch_unary(cudaStream_t stream, const UnaryArguments& arguments) {
  if (arguments.elements == 0) return cudaSuccess;
  switch (arguments.type) {
    case ElementType::f32: return unary_of_real(stream, arguments);
    case ElementType::i64: return unary_of_any_number<std::int64_t>(stream, arguments);
    case ElementType::boolean:
      if (arguments.op != UnaryOp::logical_not) return cudaErrorInvalidValue;
      return unary<elements::LogicalNot, bool>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t launch_binary(cudaStream_t stream, const BinaryArguments& arguments) {
  if (arguments.elements == 0) return cudaSuccess;
  switch (arguments.type) {
    case ElementType::f32: return binary_of_real(stream, arguments);
    case ElementType::i64: return binary_of_any_number<std::int64_t>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t launch_compare(cudaStream_t stream, const CompareArguments& arguments) {
  if (arguments.elements == 0) return cudaSuccess;
  switch (arguments.type) {
    case ElementType::f32: return compare<float>(stream, arguments);
    case ElementType::i32: return compare<std::int32_t>(stream, arguments);
    case ElementType::i64: return compare<std::int64_t>(stream, arguments);
    case ElementType::boolean: return compare_booleans(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace kolo::cuda
