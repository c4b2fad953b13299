// Kernels that make each element of the result of one element of each operand. See launch.h.
#pragma once

#include <kolo/core/kernels/cuda/launch.h>
#include <kolo/core/kernels/elements/table.h>

namespace kolo::cuda {

using elements::BinaryOps;
using elements::UnaryOps;

/// y[i] = op(x[i]), of the type that the row's functor gives; y may be x, if an element of it is as large.
struct UnaryArguments {
  int op;  // its number in UnaryOps
  ElementType type;
  const void* x;
  void* y;
  std::int64_t elements;
};
cudaError_t launch_unary(cudaStream_t stream, const UnaryArguments& arguments);

/// y[i] = op(a, b), of those elements that the walk through y meets at its element i; a walk of one dimension
/// moves by 0 or 1. y may be an operand that is not repeated, if an element of it is as large.
struct BinaryArguments {
  int op;  // its number in BinaryOps
  ElementType type;
  const void* a;
  const void* b;
  void* y;
  Walk<2> walk;
  std::int64_t elements;  // of y
};
cudaError_t launch_binary(cudaStream_t stream, const BinaryArguments& arguments);

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
  int activation;  // its number in elements::Activations
  float alpha;
  const float* x;
  float* y;
  std::int64_t elements;
};
cudaError_t launch_activation(cudaStream_t stream, const ActivationArguments& arguments);

/// y[i] = a · f′(b): of the gradient a and the activation's input b. y may be either.
struct ActivationGradArguments {
  int activation;  // its number in elements::Activations
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
