#include <memory>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cpu/detail/broadcast_kernel.h>
#include <kolo/core/kernels/cpu/detail/element_loops.h>
#include <kolo/core/kernels/cpu/parallel.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

using detail::BinaryOp;
using detail::UnaryOp;

const std::vector<DType> kArithmetic = {DType::f32, DType::f64, DType::i32, DType::i64};
const std::vector<DType> kReal = {DType::f32, DType::f64};

class UnaryKernel final : public Kernel {
 public:
  explicit UnaryKernel(detail::UnaryLoop loop) : loop_(loop) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.output(0);
    const auto size = static_cast<std::int64_t>(size_of(x.dtype()));
    parallel_for(x.elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      loop_(x.raw() + begin * size, y.raw() + begin * size, end - begin);
    });
  }

 private:
  detail::UnaryLoop loop_;
};

// A whole number divided by 0 would end the process; a real one is infinite.
class IntegerDivKernel final : public Kernel {
 public:
  explicit IntegerDivKernel(DType type) : divide_(detail::binary_loop(BinaryOp::div, type)) {}
  void compute(KernelContext& context) override {
    const Tensor& b = context.input(1);
    if (b.dtype() == DType::i32 ? has_zero<std::int32_t>(b) : has_zero<std::int64_t>(b))
      throw InvalidArgumentError("Integer division by zero");
    divide_.compute(context);
  }

 private:
  template <typename T>
  static bool has_zero(const Tensor& tensor) {
    for (const T value : tensor.span<T>())
      if (value == 0) return true;
    return false;
  }
  detail::BroadcastKernel divide_;
};

RegisterKernel binary(const char* op, const std::vector<DType>& types, BinaryOp loop) {
  return RegisterKernel(op, "CPU", types, [loop](KernelInit& init) -> std::unique_ptr<Kernel> {
    return std::make_unique<detail::BroadcastKernel>(detail::binary_loop(loop, init.input_dtype(0)));
  });
}

RegisterKernel unary(const char* op, const std::vector<DType>& types, UnaryOp loop) {
  return RegisterKernel(op, "CPU", types, [loop](KernelInit& init) -> std::unique_ptr<Kernel> {
    return std::make_unique<UnaryKernel>(detail::unary_loop(loop, init.input_dtype(0)));
  });
}

const RegisterKernel binary_kernels[] = {
    binary("Add", kArithmetic, BinaryOp::add),
    binary("Sub", kArithmetic, BinaryOp::sub),
    binary("Mul", kArithmetic, BinaryOp::mul),
    binary("Div", kReal, BinaryOp::div),
    binary("Maximum", kArithmetic, BinaryOp::maximum),
    binary("Minimum", kArithmetic, BinaryOp::minimum),
    binary("Pow", kReal, BinaryOp::pow),
    binary("TanhGrad", kReal, BinaryOp::tanh_grad),
    binary("SigmoidGrad", kReal, BinaryOp::sigmoid_grad),
    binary("ReluGrad", kReal, BinaryOp::relu_grad),
};

const RegisterKernel integer_div("Div", "CPU", {DType::i32, DType::i64},
                                 [](KernelInit& init) -> std::unique_ptr<Kernel> {
                                   return std::make_unique<IntegerDivKernel>(init.input_dtype(0));
                                 });

const RegisterKernel unary_kernels[] = {
    unary("Neg", kArithmetic, UnaryOp::neg),   unary("Abs", kArithmetic, UnaryOp::abs),
    unary("Sign", kArithmetic, UnaryOp::sign), unary("Square", kArithmetic, UnaryOp::square),
    unary("Sqrt", kReal, UnaryOp::sqrt),       unary("Rsqrt", kReal, UnaryOp::rsqrt),
    unary("Exp", kReal, UnaryOp::exp),         unary("Log", kReal, UnaryOp::log),
    unary("Tanh", kReal, UnaryOp::tanh),       unary("Sigmoid", kReal, UnaryOp::sigmoid),
    unary("Relu", kArithmetic, UnaryOp::relu), unary("Floor", kReal, UnaryOp::floor),
};

// Sums two inputs at a time into the output, piece by piece, so that the output's piece stays in the cache
// meanwhile.
class AddNKernel final : public Kernel {
 public:
  explicit AddNKernel(DType type) : add_(detail::binary_loop(BinaryOp::add, type)) {}
  void compute(KernelContext& context) override {
    const Tensor& y = context.output(0);
    for (int i = 1; i < context.num_inputs(); ++i)
      if (context.input(i).shape() != y.shape())
        throw InvalidArgumentError("AddN: input 0 is {} and input {} is {}; all must have one shape",
                                   context.input(0).shape(), i, context.input(i).shape());
    if (context.num_inputs() == 1) {
      if (y.raw() != context.input(0).raw()) y.copy_from(context.input(0));
      return;
    }
    parallel_for(y.elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      for (; begin < end; begin += kPiece) add_piece(context, begin, std::min(kPiece, end - begin));
    });
  }

 private:
  static constexpr std::int64_t kPiece = 4096;
  void add_piece(const KernelContext& context, std::int64_t begin, std::int64_t count) const {
    const Tensor& y = context.output(0);
    const auto at = begin * static_cast<std::int64_t>(size_of(y.dtype()));
    add_(context.input(0).raw() + at, 1, context.input(1).raw() + at, 1, y.raw() + at, count);
    for (int i = 2; i < context.num_inputs(); ++i)
      add_(y.raw() + at, 1, context.input(i).raw() + at, 1, y.raw() + at, count);
  }
  detail::BinaryLoop add_;
};

const RegisterKernel add_n("AddN", "CPU", kArithmetic, [](KernelInit& init) -> std::unique_ptr<Kernel> {
  return std::make_unique<AddNKernel>(init.input_dtype(0));
});

}  // namespace
}  // namespace kolo
