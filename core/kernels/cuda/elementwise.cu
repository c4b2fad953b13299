#include <type_traits>

#include <kolo/core/kernels/cuda/launch_elementwise.h>
#include <kolo/core/kernels/elements/binary.h>
#include <kolo/core/kernels/elements/unary.h>
#include <kolo/core/kernels/cuda/grid.cuh>

namespace kolo::cuda {
namespace {

// No __restrict__ in here: results may lie where an operand does.
template <typename Operation, typename T, typename Result>
__global__ __launch_bounds__(kThreads) void unary_kernel(const T* x, Result* y, std::int64_t elements) {
  for_each_element(elements, [=](std::int64_t i) { y[i] = Operation()(x[i]); });
}

template <typename Operation, typename Result = void, typename T = float>
cudaError_t unary(cudaStream_t stream, const UnaryArguments& arguments) {
  using Written = std::conditional_t<std::is_void_v<Result>, T, Result>;
  unary_kernel<Operation><<<blocks_for(arguments.elements), kThreads, 0, stream>>>(
      static_cast<const T*>(arguments.x), static_cast<Written*>(arguments.y), arguments.elements);
  return cudaGetLastError();
}

template <typename T>
cudaError_t unary_of_any_number(cudaStream_t stream, const UnaryArguments& arguments) {
  using namespace elements;
  switch (arguments.op) {
    case UnaryOp::neg: return unary<Neg, T, T>(stream, arguments);
    case UnaryOp::abs: return unary<Abs, T, T>(stream, arguments);
    case UnaryOp::sign: return unary<Sign, T, T>(stream, arguments);
    case UnaryOp::square: return unary<Square, T, T>(stream, arguments);
    case UnaryOp::relu: return unary<Relu, T, T>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t unary_of_real(cudaStream_t stream, const UnaryArguments& arguments) {
  using namespace elements;
  switch (arguments.op) {
    case UnaryOp::sqrt: return unary<Sqrt>(stream, arguments);
    case UnaryOp::rsqrt: return unary<Rsqrt>(stream, arguments);
    case UnaryOp::exp: return unary<Exp>(stream, arguments);
    case UnaryOp::log: return unary<Log>(stream, arguments);
    case UnaryOp::log1p: return unary<Log1p>(stream, arguments);
    case UnaryOp::expm1: return unary<Expm1>(stream, arguments);
    case UnaryOp::tanh: return unary<Tanh>(stream, arguments);
    case UnaryOp::sigmoid: return unary<Sigmoid>(stream, arguments);
    case UnaryOp::floor: return unary<Floor>(stream, arguments);
    case UnaryOp::ceil: return unary<Ceil>(stream, arguments);
    case UnaryOp::round: return unary<Round>(stream, arguments);
    case UnaryOp::reciprocal: return unary<Reciprocal>(stream, arguments);
    case UnaryOp::erf: return unary<Erf>(stream, arguments);
    case UnaryOp::is_nan: return unary<IsNan, bool>(stream, arguments);
    case UnaryOp::is_inf: return unary<IsInf, bool>(stream, arguments);
    case UnaryOp::is_finite: return unary<IsFinite, bool>(stream, arguments);
    default: return unary_of_any_number<float>(stream, arguments);
  }
}

template <typename Operation, typename T, typename Result>
__global__ __launch_bounds__(kThreads) void binary_kernel(const T* a, const T* b, Result* y,
                                                          const __grid_constant__ Walk<2> walk,
                                                          std::int64_t elements) {
  if (walk.rank <= 1) {  // a step of 0 or 1 for each operand: no division
    const auto a_step = static_cast<int>(walk.strides[0][0]), b_step = static_cast<int>(walk.strides[1][0]);
    for_each_element(elements, [=](std::int64_t i) { y[i] = Operation()(a[i * a_step], b[i * b_step]); });
  } else {
    for_each_element(elements, [&](std::int64_t i) {
      const Offsets<2> offsets = offsets_at(walk, i);
      y[i] = Operation()(a[offsets.at[0]], b[offsets.at[1]]);
    });
  }
}

template <typename Operation, typename T, typename Result, typename Arguments>
cudaError_t binary(cudaStream_t stream, const Arguments& arguments) {
  binary_kernel<Operation><<<blocks_for(arguments.elements), kThreads, 0, stream>>>(
      static_cast<const T*>(arguments.a), static_cast<const T*>(arguments.b),
      static_cast<Result*>(arguments.y), arguments.walk, arguments.elements);
  return cudaGetLastError();
}

template <typename T>
cudaError_t binary_of_any_number(cudaStream_t stream, const BinaryArguments& arguments) {
  using namespace elements;
  switch (arguments.op) {
    case BinaryOp::add: return binary<Add, T, T>(stream, arguments);
    case BinaryOp::sub: return binary<Sub, T, T>(stream, arguments);
    case BinaryOp::mul: return binary<Mul, T, T>(stream, arguments);
    case BinaryOp::maximum: return binary<Maximum, T, T>(stream, arguments);
    case BinaryOp::minimum: return binary<Minimum, T, T>(stream, arguments);
    case BinaryOp::squared_difference: return binary<SquaredDifference, T, T>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t binary_of_real(cudaStream_t stream, const BinaryArguments& arguments) {
  using namespace elements;
  using T = float;
  switch (arguments.op) {
    case BinaryOp::div: return binary<Div, T, T>(stream, arguments);
    case BinaryOp::pow: return binary<Pow, T, T>(stream, arguments);
    case BinaryOp::floor_div: return binary<FloorDiv, T, T>(stream, arguments);
    case BinaryOp::floor_mod: return binary<FloorMod, T, T>(stream, arguments);
    case BinaryOp::tanh_grad: return binary<TanhGrad, T, T>(stream, arguments);
    case BinaryOp::sigmoid_grad: return binary<SigmoidGrad, T, T>(stream, arguments);
    case BinaryOp::relu_grad: return binary<ReluGrad, T, T>(stream, arguments);
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
  if (arguments.elements == 0) return cudaSuccess;  // a grid of no blocks is an error
  switch (arguments.type) {
    case ElementType::f32: return unary_of_real(stream, arguments);
    case ElementType::i64: return unary_of_any_number<std::int64_t>(stream, arguments);
    case ElementType::boolean:
      if (arguments.op != UnaryOp::logical_not) return cudaErrorInvalidValue;
      return unary<elements::LogicalNot, bool, bool>(stream, arguments);
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
