// Kernels that make each element of the result of one element of each operand. See launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>

namespace kolo::cuda {

/// The functors of elements/unary.h. Whole numbers: neg to relu. logical_not: boolean alone.
// clang-format off
enum class UnaryOp {
  neg, abs, sign, square, relu,
  sqrt, rsqrt, exp, log, log1p, expm1, tanh, sigmoid, floor, ceil, round, reciprocal, sin, cos, erf,
  is_nan, is_inf, is_finite,  // the result is boolean
  logical_not,
};
/// The functors of elements/binary.h. Whole numbers: add to squared_difference.
enum class BinaryOp {
  add, sub, mul, maximum, minimum, squared_difference,
  div, pow, floor_div, floor_mod, tanh_grad, sigmoid_grad, relu_grad,
};
/// Of booleans: equal, not_equal and the logical ones.
enum class CompareOp { equal, not_equal, less, less_equal, greater, greater_equal, logical_and, logical_or };
/// The functors of elements/activations.h.
enum class Activation { gelu, gelu_tanh, swish, elu, selu, leaky_relu, softplus, relu6 };
// clang-format on

/// y[i] = op(x[i]); y may be x. f32, i64, boolean.
struct UnaryArguments {
  UnaryOp op;
  ElementType type;
  const void* x;
  void* y;
  std::int64_t elements;
};
cudaError_t launch_unary(cudaStream_t stream, const UnaryArguments& arguments);

/// y[i] = op(a, b), of those elements that the walk through y meets at its element i; a walk of one dimension
/// moves by 0 or 1. y may be an operand that is not repeated. f32, i64.
struct BinaryArguments {
  BinaryOp op;
  ElementType type;
  const void* a;
  const void* b;
  void* y;
  Walk<2> walk;
  std::int64_t elements;  // of y
};
cudaError_t launch_binary(cudaStream_t stream, const BinaryArguments& arguments);

/// The same with a boolean result. f32, i32, i64, boolean.
struct CompareArguments {
  CompareOp op;
  ElementType type;
  const void* a;
  const void* b;
  bool* y;
  Walk<2> walk;
  std::int64_t elements;  // of y
};
cudaError_t launch_compare(cudaStream_t stream, const CompareArguments& arguments);

/// y[i] = condition ? a : b, of elements of 1, 2, 4 or 8 bytes. y may be a or b, where that is not repeated.
struct SelectArguments {
  const bool* condition;
  const void* a;
  const void* b;
  void* y;
  int bytes_per_element;
  Walk<3> walk;           // condition, a, b
  std::int64_t elements;  // of y
};
cudaError_t launch_select(cudaStream_t stream, const SelectArguments& arguments);

/// y[i] = f(x[i], alpha); y may be x.
struct ActivationArguments {
  Activation activation;
  float alpha;
  const float* x;
  float* y;
  std::int64_t elements;
};
cudaError_t launch_activation(cudaStream_t stream, const ActivationArguments& arguments);

/// y[i] = a · f′(b): of the gradient a and the activation's input b. y may be either.
struct ActivationGradArguments {
  Activation activation;
  float alpha;
  const float* a;
  const float* b;
  float* y;
  Walk<2> walk;  // as BinaryArguments has it
  std::int64_t elements;
};
cudaError_t launch_activation_grad(cudaStream_t stream, const ActivationGradArguments& arguments);

/// y[i] = x[i] in another type, as elements/cast.h has it. All types.
struct CastArguments {
  ElementType from;
  ElementType to;
  const void* x;
  void* y;
  std::int64_t elements;
};
cudaError_t launch_cast(cudaStream_t stream, const CastArguments& arguments);

/// dx[i] = dy / divisor, of that element of dy which the walk through dx meets: the gradient of a sum
/// (divisor 1) or a mean.
struct ExpandArguments {
  const float* dy;
  float* dx;
  Walk<1> walk;
  std::int64_t elements;  // of dx
  float divisor;
};
cudaError_t launch_expand(cudaStream_t stream, const ExpandArguments& arguments);

}  // namespace kolo::cuda
