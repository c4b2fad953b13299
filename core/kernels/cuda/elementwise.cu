#include <type_traits>

#include <kolo/core/kernels/cuda/launch_elementwise.h>
#include <kolo/core/kernels/elements/activations.h>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

using namespace elements;

// No __restrict__ in here: results may lie where an operand does.
template <typename Operation, typename T>
struct UnaryWork {
  using Result = std::invoke_result_t<Operation, T>;
  Operation operation;
  const T* x;
  Result* y;
  std::int64_t elements;

  KOLO_HOST_DEVICE void operator()(std::int64_t i) const { y[i] = operation(x[i]); }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, elements);
    visit(y, elements);
  }
};

template <typename T, typename Operation, typename Arguments>
cudaError_t unary(cudaStream_t stream, const Arguments& arguments, Operation operation) {
  using Work = UnaryWork<Operation, T>;
  return run_each("unary", stream, arguments.elements,
                  Work{operation, static_cast<const T*>(arguments.x),
                       static_cast<typename Work::Result*>(arguments.y), arguments.elements});
}

// For a row of the table.
template <typename Op, typename T>
cudaError_t unary_for(cudaStream_t stream, const UnaryArguments& arguments) {
  if constexpr (gpu_takes<T>(Op::kNumbers)) return unary<T>(stream, arguments, typename Op::Functor());
  else return cudaErrorInvalidValue;
}

template <typename Op>
cudaError_t unary_of(cudaStream_t stream, const UnaryArguments& arguments) {
  switch (arguments.type) {
    case ElementType::f32: return unary_for<Op, float>(stream, arguments);
    case ElementType::i64: return unary_for<Op, std::int64_t>(stream, arguments);
    case ElementType::boolean: return unary_for<Op, bool>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

template <typename Operation, typename T>
struct BinaryWork {
  using Result = std::invoke_result_t<Operation, T, T>;
  Operation operation;
  const T* a;
  const T* b;
  Result* y;
  Walk<2> walk;
  std::int64_t elements;

  KOLO_HOST_DEVICE void operator()(std::int64_t i) const {
    if (walk.rank <= 1) {  // a step of 0 or 1 for each operand: no division
      const auto a_step = static_cast<int>(walk.strides[0][0]), b_step = static_cast<int>(walk.strides[1][0]);
      y[i] = operation(a[i * a_step], b[i * b_step]);
    } else {
      const Offsets<2> offsets = offsets_at(walk, i);
      y[i] = operation(a[offsets.at[0]], b[offsets.at[1]]);
    }
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(a, extent(walk, 0));
    visit(b, extent(walk, 1));
    visit(y, elements);
  }
};

// Of binary ops and gradients of activations alike.
template <typename T, typename Operation, typename Arguments>
cudaError_t binary(cudaStream_t stream, const Arguments& arguments, Operation operation) {
  using Work = BinaryWork<Operation, T>;
  return run_each("binary", stream, arguments.elements,
                  Work{operation, static_cast<const T*>(arguments.a), static_cast<const T*>(arguments.b),
                       static_cast<typename Work::Result*>(arguments.y), arguments.walk, arguments.elements});
}

template <typename Op, typename T>
cudaError_t binary_for(cudaStream_t stream, const BinaryArguments& arguments) {
  if constexpr (gpu_takes<T>(Op::kNumbers)) return binary<T>(stream, arguments, typename Op::Functor());
  else return cudaErrorInvalidValue;
}

template <typename Op>
cudaError_t binary_of(cudaStream_t stream, const BinaryArguments& arguments) {
  switch (arguments.type) {
    case ElementType::f32: return binary_for<Op, float>(stream, arguments);
    case ElementType::i32: return binary_for<Op, std::int32_t>(stream, arguments);
    case ElementType::i64: return binary_for<Op, std::int64_t>(stream, arguments);
    case ElementType::boolean: return binary_for<Op, bool>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t launch_unary(cudaStream_t stream, const UnaryArguments& arguments) {
  cudaError_t result = cudaErrorInvalidValue;
  UnaryOps::at(arguments.op,
               [&](auto row) { result = unary_of<typename decltype(row)::type>(stream, arguments); });
  return result;
}

cudaError_t launch_binary(cudaStream_t stream, const BinaryArguments& arguments) {
  cudaError_t result = cudaErrorInvalidValue;
  BinaryOps::at(arguments.op,
                [&](auto row) { result = binary_of<typename decltype(row)::type>(stream, arguments); });
  return result;
}

cudaError_t launch_activation(cudaStream_t stream, const ActivationArguments& arguments) {
  cudaError_t result = cudaErrorInvalidValue;
  Activations::at(arguments.activation, [&](auto row) {
    result = unary<float>(stream, arguments, Activate<typename decltype(row)::type>{arguments.alpha});
  });
  return result;
}

cudaError_t launch_activation_grad(cudaStream_t stream, const ActivationGradArguments& arguments) {
  cudaError_t result = cudaErrorInvalidValue;
  Activations::at(arguments.activation, [&](auto row) {
    result = binary<float>(stream, arguments, ActivateGrad<typename decltype(row)::type>{arguments.alpha});
  });
  return result;
}

}  // namespace kolo::cuda
