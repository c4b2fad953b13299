// Each element of the result of one element of each operand, with broadcasting.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_elementwise.h>

namespace kolo::cuda {
namespace {

class UnaryKernel final : public Kernel {
 public:
  UnaryKernel(KernelInit& init, UnaryOp op) : op_(op), type_(element_type(init.input_dtype(0))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_unary(stream_of(context), {.op = op_,
                                                 .type = type_,
                                                 .x = context.input(0).raw(),
                                                 .y = context.output(0).raw(),
                                                 .elements = context.input(0).elements()}),
               "an op of one element");
  }

 private:
  UnaryOp op_;
  ElementType type_;
};

detail::StridedIndex<2> broadcast(const KernelInit& init) {
  return detail::broadcast_index(init.input_shape(0), init.input_shape(1), init.output_shape(0));
}

// A factor for each row of x.
detail::StridedIndex<2> by_rows(const KernelInit& init) {
  const Shape& x = init.input_shape(0);
  detail::StridedIndex<2> index;
  index.push(x.dim(0), {x.dim(1), 1});
  index.push(x.dim(1), {1, 0});
  return index;
}

// A number for each channel of x, which is [outer, channels, inner].
detail::StridedIndex<2> by_channels(const KernelInit& init) {
  const Shape& x = init.input_shape(0);
  const int axis = x.rank() == 4 && init.attr<std::string>("data_format") == "NCHW" ? 1 : x.rank() - 1;
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.dim(i);
  for (int i = axis + 1; i < x.rank(); ++i) inner *= x.dim(i);
  detail::StridedIndex<2> index;
  index.push(outer, {x.dim(axis) * inner, 0});
  index.push(x.dim(axis), {inner, 1});
  index.push(inner, {1, 0});
  return index;
}

class BinaryKernel final : public Kernel {
 public:
  using Index = detail::StridedIndex<2> (*)(const KernelInit& init);
  BinaryKernel(KernelInit& init, BinaryOp op, Index index)
      : op_(op), type_(element_type(init.input_dtype(0))), walk_(walk_of(index(init))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_binary(stream_of(context), {.op = op_,
                                                  .type = type_,
                                                  .a = context.input(0).raw(),
                                                  .b = context.input(1).raw(),
                                                  .y = context.output(0).raw(),
                                                  .walk = walk_,
                                                  .elements = context.output(0).elements()}),
               "an op of two elements");
  }

 private:
  BinaryOp op_;
  ElementType type_;
  Walk<2> walk_;
};

class CompareKernel final : public Kernel {
 public:
  CompareKernel(KernelInit& init, CompareOp op)
      : op_(op), type_(element_type(init.input_dtype(0))), walk_(walk_of(broadcast(init))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_compare(stream_of(context), {.op = op_,
                                                   .type = type_,
                                                   .a = context.input(0).raw(),
                                                   .b = context.input(1).raw(),
                                                   .y = context.output(0).data<bool>(),
                                                   .walk = walk_,
                                                   .elements = context.output(0).elements()}),
               "a comparison");
  }

 private:
  CompareOp op_;
  ElementType type_;
  Walk<2> walk_;
};

class SelectKernel final : public Kernel {
 public:
  explicit SelectKernel(KernelInit& init)
      : walk_(walk_of(detail::broadcast_index_to(init.output_shape(0), init.input_shape(0),
                                                 init.input_shape(1), init.input_shape(2)))) {}
  void compute(KernelContext& context) override {
    const Tensor& y = context.output(0);
    check_cuda(launch_select(stream_of(context), {.condition = context.input(0).data<bool>(),
                                                  .a = context.input(1).raw(),
                                                  .b = context.input(2).raw(),
                                                  .y = y.raw(),
                                                  .bytes_per_element = static_cast<int>(size_of(y.dtype())),
                                                  .walk = walk_,
                                                  .elements = y.elements()}),
               "select");
  }

 private:
  Walk<3> walk_;
};

class CastKernel final : public Kernel {
 public:
  explicit CastKernel(KernelInit& init)
      : from_(element_type(init.input_dtype(0))), to_(element_type(init.output_dtype(0))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_cast(stream_of(context), {.from = from_,
                                                .to = to_,
                                                .x = context.input(0).raw(),
                                                .y = context.output(0).raw(),
                                                .elements = context.output(0).elements()}),
               "cast");
  }

 private:
  ElementType from_;
  ElementType to_;
};

std::unique_ptr<Kernel> make_cast(KernelInit& init) {
  if (init.output_dtype(0) == DType::string) return init.decline("there is no text in a GPU's memory");
  return planned<CastKernel>()(init);
}
std::unique_ptr<Kernel> make_select(KernelInit& init) {
  if (init.output_dtype(0) == DType::string) return init.decline("there is no text in a GPU's memory");
  return planned<SelectKernel>()(init);
}

class ActivationKernel final : public Kernel {
 public:
  ActivationKernel(KernelInit& init, Activation activation)
      : activation_(activation), alpha_(static_cast<float>(init.attr<double>("alpha"))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_activation(stream_of(context), {.activation = activation_,
                                                      .alpha = alpha_,
                                                      .x = context.input(0).data<float>(),
                                                      .y = context.output(0).data<float>(),
                                                      .elements = context.input(0).elements()}),
               "an activation");
  }

 private:
  Activation activation_;
  float alpha_;
};

class ActivationGradKernel final : public Kernel {
 public:
  ActivationGradKernel(KernelInit& init, Activation activation)
      : activation_(activation),
        alpha_(static_cast<float>(init.attr<double>("alpha"))),
        walk_(walk_of(broadcast(init))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_activation_grad(stream_of(context), {.activation = activation_,
                                                           .alpha = alpha_,
                                                           .a = context.input(0).data<float>(),
                                                           .b = context.input(1).data<float>(),
                                                           .y = context.output(0).data<float>(),
                                                           .walk = walk_,
                                                           .elements = context.output(0).elements()}),
               "the gradient of an activation");
  }

 private:
  Activation activation_;
  float alpha_;
  Walk<2> walk_;
};

// The sum grows in the output, two inputs at a time: the CPU's order.
class AddNKernel final : public Kernel {
 public:
  explicit AddNKernel(KernelInit& init) : api_(gpu_of(init).api), type_(element_type(init.input_dtype(0))) {
    for (int i = 1; i < init.num_inputs(); ++i)
      if (init.input_shape(i) != init.output_shape(0))
        throw InvalidArgumentError("AddN: input 0 is {} and input {} is {}; all must have one shape",
                                   init.input_shape(0), i, init.input_shape(i));
    detail::StridedIndex<2> index;
    index.push(init.output_shape(0).elements(), {1, 1});
    walk_ = walk_of(index);
  }

  void compute(KernelContext& context) override {
    const Tensor &y = context.output(0), &first = context.input(0);
    if (context.num_inputs() == 1 && y.raw() != first.raw() && y.bytes() > 0)
      check_cuda(
          api_.memcpy_async(y.raw(), first.raw(), y.bytes(), cudaMemcpyDeviceToDevice, stream_of(context)),
          "cudaMemcpyAsync");
    for (int i = 1; i < context.num_inputs(); ++i)
      check_cuda(launch_binary(stream_of(context), {.op = BinaryOp::add,
                                                    .type = type_,
                                                    .a = i == 1 ? first.raw() : y.raw(),
                                                    .b = context.input(i).raw(),
                                                    .y = y.raw(),
                                                    .walk = walk_,
                                                    .elements = y.elements()}),
                 "add_n");
  }

 private:
  const CudaApi& api_;
  ElementType type_;
  Walk<2> walk_;
};

const std::vector<DType> kArithmetic = {DType::f32, DType::i64};
const std::vector<DType> kComparable = {DType::f32, DType::i32, DType::i64};
const std::vector<DType> kLogical = {DType::boolean};

RegisterGpuKernel unary(const char* op, const std::vector<DType>& types, UnaryOp kernel) {
  return {op, types, planned<UnaryKernel>(kernel)};
}
RegisterGpuKernel binary(const char* op, const std::vector<DType>& types, BinaryOp kernel,
                         BinaryKernel::Index index = broadcast) {
  return {op, types, planned<BinaryKernel>(kernel, index)};
}
RegisterGpuKernel comparison(const char* op, const std::vector<DType>& types, CompareOp kernel) {
  return {op, types, planned<CompareKernel>(kernel)};
}
RegisterGpuKernel activation(const char* op, Activation kernel) {
  return {op, kReal, planned<ActivationKernel>(kernel)};
}
RegisterGpuKernel activation_grad(const char* op, Activation kernel) {
  return {op, kReal, planned<ActivationGradKernel>(kernel)};
}

const RegisterGpuKernel elementwise_kernels[] = {
    unary("Neg", kArithmetic, UnaryOp::neg),
    unary("Abs", kArithmetic, UnaryOp::abs),
    unary("Sign", kArithmetic, UnaryOp::sign),
    unary("Square", kArithmetic, UnaryOp::square),
    unary("Relu", kArithmetic, UnaryOp::relu),
    unary("Sqrt", kReal, UnaryOp::sqrt),
    unary("Rsqrt", kReal, UnaryOp::rsqrt),
    unary("Exp", kReal, UnaryOp::exp),
    unary("Log", kReal, UnaryOp::log),
    unary("Log1p", kReal, UnaryOp::log1p),
    unary("Expm1", kReal, UnaryOp::expm1),
    unary("Tanh", kReal, UnaryOp::tanh),
    unary("Sigmoid", kReal, UnaryOp::sigmoid),
    unary("Floor", kReal, UnaryOp::floor),
    unary("Ceil", kReal, UnaryOp::ceil),
    unary("Round", kReal, UnaryOp::round),
    unary("Reciprocal", kReal, UnaryOp::reciprocal),
    unary("Sin", kReal, UnaryOp::sin),
    unary("Cos", kReal, UnaryOp::cos),
    unary("Erf", kReal, UnaryOp::erf),
    unary("IsNan", kReal, UnaryOp::is_nan),
    unary("IsInf", kReal, UnaryOp::is_inf),
    unary("IsFinite", kReal, UnaryOp::is_finite),
    unary("LogicalNot", kLogical, UnaryOp::logical_not),
    binary("Add", kArithmetic, BinaryOp::add),
    binary("Sub", kArithmetic, BinaryOp::sub),
    binary("Mul", kArithmetic, BinaryOp::mul),
    binary("Maximum", kArithmetic, BinaryOp::maximum),
    binary("Minimum", kArithmetic, BinaryOp::minimum),
    binary("SquaredDifference", kArithmetic, BinaryOp::squared_difference),
    // Whole numbers are divided by the host, which can throw where one is 0.
    binary("Div", kReal, BinaryOp::div),
    binary("FloorDiv", kReal, BinaryOp::floor_div),
    binary("FloorMod", kReal, BinaryOp::floor_mod),
    binary("Pow", kReal, BinaryOp::pow),
    binary("TanhGrad", kReal, BinaryOp::tanh_grad),
    binary("SigmoidGrad", kReal, BinaryOp::sigmoid_grad),
    binary("ReluGrad", kReal, BinaryOp::relu_grad),
    binary("ScaleRows", kReal, BinaryOp::mul, by_rows),
    binary("BiasAdd", kReal, BinaryOp::add, by_channels),
    comparison("Equal", kComparable, CompareOp::equal),
    comparison("NotEqual", kComparable, CompareOp::not_equal),
    comparison("Equal", kLogical, CompareOp::equal),
    comparison("NotEqual", kLogical, CompareOp::not_equal),
    comparison("Less", kComparable, CompareOp::less),
    comparison("LessEqual", kComparable, CompareOp::less_equal),
    comparison("Greater", kComparable, CompareOp::greater),
    comparison("GreaterEqual", kComparable, CompareOp::greater_equal),
    comparison("LogicalAnd", kLogical, CompareOp::logical_and),
    comparison("LogicalOr", kLogical, CompareOp::logical_or),
    activation("Gelu", Activation::gelu),
    activation_grad("GeluGrad", Activation::gelu),
    activation("GeluTanh", Activation::gelu_tanh),
    activation_grad("GeluTanhGrad", Activation::gelu_tanh),
    activation("Swish", Activation::swish),
    activation_grad("SwishGrad", Activation::swish),
    activation("Elu", Activation::elu),
    activation_grad("EluGrad", Activation::elu),
    activation("Selu", Activation::selu),
    activation_grad("SeluGrad", Activation::selu),
    activation("LeakyRelu", Activation::leaky_relu),
    activation_grad("LeakyReluGrad", Activation::leaky_relu),
    activation("Softplus", Activation::softplus),
    activation_grad("SoftplusGrad", Activation::softplus),
    activation("Relu6", Activation::relu6),
    activation_grad("Relu6Grad", Activation::relu6),
    {"Select", {DType::boolean}, make_select},
    {"AddN", kArithmetic, planned<AddNKernel>()},
    {"Cast", kAllButStrings, make_cast},
};

}  // namespace
}  // namespace kolo::cuda
