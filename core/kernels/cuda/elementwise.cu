#include <type_traits>

#include <kolo/core/kernels/cuda/launch_elementwise.h>
#include <kolo/core/kernels/elements/activations.h>
#include <kolo/core/kernels/elements/binary.h>
#include <kolo/core/kernels/elements/unary.h>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

using namespace elements;

template <typename T>
struct FunctorTag {
  using type = T;
};

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

template <typename T>
cudaError_t unary_of_any_number(cudaStream_t stream, const UnaryArguments& arguments) {
  switch (arguments.op) {
    case UnaryOp::neg: return unary<T>(stream, arguments, Neg());
    case UnaryOp::abs: return unary<T>(stream, arguments, Abs());
    case UnaryOp::sign: return unary<T>(stream, arguments, Sign());
    case UnaryOp::square: return unary<T>(stream, arguments, Square());
    case UnaryOp::relu: return unary<T>(stream, arguments, Relu());
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t unary_of_real(cudaStream_t stream, const UnaryArguments& arguments) {
  using T = float;
  switch (arguments.op) {
    case UnaryOp::sqrt: return unary<T>(stream, arguments, Sqrt());
    case UnaryOp::rsqrt: return unary<T>(stream, arguments, Rsqrt());
    case UnaryOp::exp: return unary<T>(stream, arguments, Exp());
    case UnaryOp::log: return unary<T>(stream, arguments, Log());
    case UnaryOp::log1p: return unary<T>(stream, arguments, Log1p());
    case UnaryOp::expm1: return unary<T>(stream, arguments, Expm1());
    case UnaryOp::tanh: return unary<T>(stream, arguments, Tanh());
    case UnaryOp::sigmoid: return unary<T>(stream, arguments, Sigmoid());
    case UnaryOp::floor: return unary<T>(stream, arguments, Floor());
    case UnaryOp::ceil: return unary<T>(stream, arguments, Ceil());
    case UnaryOp::round: return unary<T>(stream, arguments, Round());
    case UnaryOp::reciprocal: return unary<T>(stream, arguments, Reciprocal());
    case UnaryOp::sin: return unary<T>(stream, arguments, Sin());
    case UnaryOp::cos: return unary<T>(stream, arguments, Cos());
    case UnaryOp::erf: return unary<T>(stream, arguments, Erf());
    case UnaryOp::is_nan: return unary<T>(stream, arguments, IsNan());
    case UnaryOp::is_inf: return unary<T>(stream, arguments, IsInf());
    case UnaryOp::is_finite: return unary<T>(stream, arguments, IsFinite());
    default: return unary_of_any_number<T>(stream, arguments);
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

// Of binary ops, comparisons and gradients of activations alike.
template <typename T, typename Operation, typename Arguments>
cudaError_t binary(cudaStream_t stream, const Arguments& arguments, Operation operation) {
  using Work = BinaryWork<Operation, T>;
  return run_each("binary", stream, arguments.elements,
                  Work{operation, static_cast<const T*>(arguments.a), static_cast<const T*>(arguments.b),
                       static_cast<typename Work::Result*>(arguments.y), arguments.walk, arguments.elements});
}

template <typename T>
cudaError_t binary_of_any_number(cudaStream_t stream, const BinaryArguments& arguments) {
  switch (arguments.op) {
    case BinaryOp::add: return binary<T>(stream, arguments, Add());
    case BinaryOp::sub: return binary<T>(stream, arguments, Sub());
    case BinaryOp::mul: return binary<T>(stream, arguments, Mul());
    case BinaryOp::maximum: return binary<T>(stream, arguments, Maximum());
    case BinaryOp::minimum: return binary<T>(stream, arguments, Minimum());
    case BinaryOp::squared_difference: return binary<T>(stream, arguments, SquaredDifference());
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t binary_of_real(cudaStream_t stream, const BinaryArguments& arguments) {
  using T = float;
  switch (arguments.op) {
    case BinaryOp::div: return binary<T>(stream, arguments, Div());
    case BinaryOp::pow: return binary<T>(stream, arguments, Pow());
    case BinaryOp::floor_div: return binary<T>(stream, arguments, FloorDiv());
    case BinaryOp::floor_mod: return binary<T>(stream, arguments, FloorMod());
    case BinaryOp::tanh_grad: return binary<T>(stream, arguments, TanhGrad());
    case BinaryOp::sigmoid_grad: return binary<T>(stream, arguments, SigmoidGrad());
    case BinaryOp::relu_grad: return binary<T>(stream, arguments, ReluGrad());
    default: return binary_of_any_number<T>(stream, arguments);
  }
}

template <typename T>
cudaError_t compare(cudaStream_t stream, const CompareArguments& arguments) {
  switch (arguments.op) {
    case CompareOp::equal: return binary<T>(stream, arguments, Equal());
    case CompareOp::not_equal: return binary<T>(stream, arguments, NotEqual());
    case CompareOp::less: return binary<T>(stream, arguments, Less());
    case CompareOp::less_equal: return binary<T>(stream, arguments, LessEqual());
    case CompareOp::greater: return binary<T>(stream, arguments, Greater());
    case CompareOp::greater_equal: return binary<T>(stream, arguments, GreaterEqual());
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t compare_booleans(cudaStream_t stream, const CompareArguments& arguments) {
  switch (arguments.op) {
    case CompareOp::equal: return binary<bool>(stream, arguments, Equal());
    case CompareOp::not_equal: return binary<bool>(stream, arguments, NotEqual());
    case CompareOp::logical_and: return binary<bool>(stream, arguments, LogicalAnd());
    case CompareOp::logical_or: return binary<bool>(stream, arguments, LogicalOr());
    default: return cudaErrorInvalidValue;
  }
}

// Calls run(Function).
template <typename Run>
cudaError_t with_function(Activation activation, const Run& run) {
  switch (activation) {
    case Activation::gelu: return run(FunctorTag<Gelu>());
    case Activation::gelu_tanh: return run(FunctorTag<GeluTanh>());
    case Activation::swish: return run(FunctorTag<Swish>());
    case Activation::elu: return run(FunctorTag<Elu>());
    case Activation::selu: return run(FunctorTag<Selu>());
    case Activation::leaky_relu: return run(FunctorTag<LeakyRelu>());
    case Activation::softplus: return run(FunctorTag<Softplus>());
    case Activation::relu6: return run(FunctorTag<Relu6>());
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_unary(cudaStream_t stream, const UnaryArguments& arguments) {
  switch (arguments.type) {
    case ElementType::f32: return unary_of_real(stream, arguments);
    case ElementType::i64: return unary_of_any_number<std::int64_t>(stream, arguments);
    case ElementType::boolean:
      if (arguments.op != UnaryOp::logical_not) return cudaErrorInvalidValue;
      return unary<bool>(stream, arguments, LogicalNot());
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t launch_binary(cudaStream_t stream, const BinaryArguments& arguments) {
  switch (arguments.type) {
    case ElementType::f32: return binary_of_real(stream, arguments);
    case ElementType::i64: return binary_of_any_number<std::int64_t>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t launch_compare(cudaStream_t stream, const CompareArguments& arguments) {
  switch (arguments.type) {
    case ElementType::f32: return compare<float>(stream, arguments);
    case ElementType::i32: return compare<std::int32_t>(stream, arguments);
    case ElementType::i64: return compare<std::int64_t>(stream, arguments);
    case ElementType::boolean: return compare_booleans(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t launch_activation(cudaStream_t stream, const ActivationArguments& arguments) {
  return with_function(arguments.activation, [&](auto function) {
    return unary<float>(stream, arguments, Activate<typename decltype(function)::type>{arguments.alpha});
  });
}

cudaError_t launch_activation_grad(cudaStream_t stream, const ActivationGradArguments& arguments) {
  return with_function(arguments.activation, [&](auto function) {
    return binary<float>(stream, arguments, ActivateGrad<typename decltype(function)::type>{arguments.alpha});
  });
}

}  // namespace kolo::cuda
